package history

import "reflect"

// A Packed has many similar structs in little memory. Each field is a column, and a field that is zero in all structs takes none.
// The operations of a large transaction, for example, differ in their keys and values, and most of their other fields are zero.
//
//	packed := history.Pack(len(operations), func(i int) Operation { return operations[i] })
//	operations = packed.Unpack(packed.Len())
//
// A Packed is immutable, so any goroutine may use it. The zero Packed has no structs.
type Packed[S any] struct {
	n       int
	columns []reflect.Value // by field: a slice of its values; the zero Value: all are zero
}

// Pack packs structs; at returns the i-th of n. All fields of S must be exported, or it panics. It
// takes about 0.2 us for a struct.
func Pack[S any](n int, at func(i int) S) Packed[S] {
	p := Packed[S]{n: n, columns: make([]reflect.Value, reflect.TypeFor[S]().NumField())}
	var one S
	row := reflect.ValueOf(&one).Elem()
	for i := range n {
		one = at(i)
		for f := range p.columns {
			v := row.Field(f)
			if v.IsZero() {
				continue
			}
			if !p.columns[f].IsValid() {
				p.columns[f] = reflect.MakeSlice(reflect.SliceOf(v.Type()), p.n, p.n)
			}
			p.columns[f].Index(i).Set(v)
		}
	}
	return p
}

// Len returns the number of structs.
func (p Packed[S]) Len() int { return p.n }

// Bytes returns the memory of the columns, without the memory to which their elements refer.
func (p Packed[S]) Bytes() (n int) {
	for _, column := range p.columns {
		if column.IsValid() {
			n += column.Len() * int(column.Type().Elem().Size())
		}
	}
	return n
}

// Unpack returns new copies of the first structs, at most so many; nil if there are none.
func (p Packed[S]) Unpack(most int) []S {
	if p.n == 0 {
		return nil
	}
	all := make([]S, min(p.n, most))
	for i := range all {
		row := reflect.ValueOf(&all[i]).Elem()
		for f, column := range p.columns {
			if column.IsValid() {
				row.Field(f).Set(column.Index(i))
			}
		}
	}
	return all
}
