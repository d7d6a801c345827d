package inspect

import (
	"path"
	"strings"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// A modelRow is a model as -f prints it: what vpp-agent 3.5 printed, and more. The names of the fields are an
// interface of scripts.
type modelRow struct {
	olderModel
	KeyFields   []string `json:",omitempty"`
	ConfigField string   `json:",omitempty"`
	Implemented bool
}

// An olderModel has what vpp-agent 3.5 printed of a model, in its order. GoType and PkgPath are those of that program:
// scripts look types up by them.
type olderModel struct {
	Name, Class, Module, Type, Version string
	KeyPrefix                          string
	NameTemplate                       string `json:",omitempty"`
	ProtoName, ProtoFile               string
	GoType, PkgPath                    string `json:",omitempty"` // empty: vpp-agent 3.5 had no such messages
}

// rowOf returns a model as -f prints it.
func rowOf(m wire.Model) modelRow {
	out := modelRow{
		olderModel: olderModel{
			Name: m.Name, Class: m.Class, Version: versionIn(m.KeyPrefix),
			KeyPrefix: m.KeyPrefix, NameTemplate: m.NameTemplate, ProtoName: m.ProtoName, ProtoFile: m.ProtoFile,
		},
		KeyFields: m.KeyFields, ConfigField: m.ConfigField, Implemented: m.Implemented,
	}
	if dot := strings.LastIndexByte(m.Name, '.'); dot >= 0 {
		out.Module, out.Type = m.Name[:dot], m.Name[dot+1:]
	}
	if folder, ok := strings.CutPrefix(path.Dir(m.ProtoFile), "ligato/"); ok {
		message := m.ProtoName[strings.LastIndexByte(m.ProtoName, '.')+1:]
		name := strings.ReplaceAll(folder, "/", "_")
		if name == "vpp_wireguard" {
			name = "vpp_wg" // the only package that was not named after its folder
		}
		out.GoType = "*" + name + "." + message
		out.PkgPath = "go.ligato.io/vpp-agent/v3/proto/ligato/" + folder
	}
	return out
}

// versionIn returns the part of a prefix of keys that is a version: v2 of config/vpp/v2/interfaces/.
func versionIn(prefix string) string {
	for part := range strings.SplitSeq(prefix, "/") {
		if len(part) > 1 && part[0] == 'v' && strings.Trim(part[1:], "0123456789") == "" {
			return part
		}
	}
	return ""
}
