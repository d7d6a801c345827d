package nodes

import (
	"slices"
	"testing"
)

func TestWithoutSlots(t *testing.T) {
	t.Parallel()
	text := `a 10.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-100 [7->-b]
b 10.0.0.2:7000@17000 master - 0 0 2 connected
c fd00::3:7000@17000,,shard-id=x master - 0 0 3 connected [7-<-a]
d 10.0.0.4:7000@17000,four.example master - 0 0 4 connected
e 10.0.0.5:7000@17000 slave a 0 0 1 connected
f 10.0.0.6:7000@17000 master,fail? - 0 0 6 connected
g 10.0.0.7:7000@17000 master - 0 0 7 disconnected
h :7000@17000 myself,master - 0 0 0 connected
i :0@0 master,noaddr - 0 0 0 connected
j - master - 0 0 0 connected
`
	if got, want := WithoutSlots(text), []string{"10.0.0.2:7000", "[fd00::3]:7000", "four.example:7000"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func FuzzWithoutSlots(f *testing.F) {
	f.Add("b 10.0.0.2:7000@17000,two master - 0 0 2 connected [7-<-a]\n")
	f.Fuzz(func(_ *testing.T, text string) { WithoutSlots(text) })
}
