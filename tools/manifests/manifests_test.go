package manifests

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const folder = "../../packaging/kubernetes"

// load decodes a file. A field that the type lacks, and one that is there twice, are errors.
func load(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// A kustomization is the part of kustomize's file format that the manifests use.
type kustomization struct {
	APIVersion, Kind, Namespace string
	Resources                   []string
	Images                      []struct{ Name, NewName, NewTag string }
	ConfigMapGenerator          []struct {
		Name, Behavior string
		Files          []string
		Options        struct{ DisableNameSuffixHash bool }
	}
}

func TestManifests(t *testing.T) {
	var space corev1.Namespace
	load(t, "base/namespace.yaml", &space)
	var set appsv1.DaemonSet
	load(t, "base/daemonset.yaml", &set)
	if set.APIVersion != "apps/v1" || set.Kind != "DaemonSet" || space.APIVersion != "v1" || space.Kind != "Namespace" {
		t.Errorf("kinds: %s %s, %s %s", set.APIVersion, set.Kind, space.APIVersion, space.Kind)
	}
	var maps, images, names []string
	for _, dir := range []string{"base", "example"} {
		var k kustomization
		load(t, dir+"/kustomization.yaml", &k)
		if k.Kind != "Kustomization" || k.Namespace != space.Name {
			t.Errorf("%s: %s in %q", dir, k.Kind, k.Namespace)
		}
		for _, resource := range k.Resources {
			exists(t, dir, resource)
		}
		for _, m := range k.ConfigMapGenerator {
			maps = append(maps, m.Name)
			for _, file := range m.Files {
				exists(t, dir, file)
			}
		}
		for _, image := range k.Images {
			names = append(names, image.Name)
		}
	}

	pod := set.Spec.Template
	for name, value := range set.Spec.Selector.MatchLabels {
		if pod.Labels[name] != value {
			t.Errorf("the selector wants %s=%s; the pods have %q", name, value, pod.Labels[name])
		}
	}
	var volumes []string
	for _, v := range pod.Spec.Volumes {
		volumes = append(volumes, v.Name)
		if v.ConfigMap != nil && !slices.Contains(maps, v.ConfigMap.Name) {
			t.Errorf("volume %s: no generator makes the ConfigMap %s", v.Name, v.ConfigMap.Name)
		}
	}
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		images = append(images, c.Image)
		for _, m := range c.VolumeMounts {
			if !slices.Contains(volumes, m.Name) {
				t.Errorf("container %s mounts %s, which is no volume", c.Name, m.Name)
			}
		}
	}
	if slices.Sort(images); !slices.Equal(images, slices.Sorted(slices.Values(names))) {
		t.Errorf("the example sets the images %q; the pods have %q", names, images)
	}
	// Probes by HTTP would wait behind all clients of the loopback.
	agent := pod.Spec.Containers[0]
	if l, r := agent.LivenessProbe.Exec, agent.ReadinessProbe.Exec; l == nil || r == nil ||
		!slices.Equal(l.Command, []string{"/bin/agentctl", "status"}) || !slices.Equal(r.Command, []string{"/bin/agentctl", "status", "--ready"}) {
		t.Errorf("probes: %v, %v", l, r)
	}
	if s := pod.Spec.SecurityContext; s == nil || s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pod has the seccomp profile of %v, want RuntimeDefault", s)
	}
	if token := pod.Spec.AutomountServiceAccountToken; token == nil || *token {
		t.Error("the pods get a token of Kubernetes, and the agent asks it nothing")
	}
}

// exists reports an error if a file or folder that a kustomization names is missing.
func exists(t *testing.T, dir, name string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(folder, dir, name)); err != nil {
		t.Error(err)
	}
}

// The test itself finds a misspelt field.
func TestAMisspeltFieldIsAnError(t *testing.T) {
	var set appsv1.DaemonSet
	if err := yaml.UnmarshalStrict([]byte("spec: {template: {spec: {hostNetwrok: true}}}"), &set); err == nil {
		t.Error("hostNetwrok was accepted")
	}
}
