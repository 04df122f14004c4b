package gpu

import (
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
)

// A timeOf is a metric of devices, as it is measured of what they did.
type timeOf struct {
	*metric.Metric
	of func(*Activity) int64
}

// Times of devices.
var (
	busyTime     = timeOf{metric.Busy, (*Activity).Busy}
	idleTime     = timeOf{metric.Idle, func(a *Activity) int64 { return a.Idle.Total() }}
	computeTime  = timeOf{metric.Compute, ran(profile.ClassCompute)}
	commTime     = timeOf{metric.Comm, ran(profile.ClassCommunication)}
	exposedComm  = timeOf{metric.ExposedComm, exposed(profile.ClassCommunication)}
	copyTime     = timeOf{metric.Copying, ran(profile.ClassMemory)}
	exposedCopy  = timeOf{metric.ExposedCopy, exposed(profile.ClassMemory)}
	otherTime    = timeOf{metric.Other, ran(profile.ClassOther)}
	exposedOther = timeOf{metric.ExposedOther, exposed(profile.ClassOther)}
)

func ran(class profile.Class) func(*Activity) int64 {
	return func(a *Activity) int64 { return a.Time(class) }
}

func exposed(class profile.Class) func(*Activity) int64 {
	return func(a *Activity) int64 { return a.Exposed(class) }
}

// partsOf are the columns of some times: the part of a whole for people, and ns.
func partsOf[T any](did func(*T) *Activity, whole func(*T) int64, wholeName string, times ...timeOf) (fields []table.Field[T]) {
	for _, t := range times {
		part := part(t.Name, t.Doc, wholeName, whole, func(r *T) int64 { return t.of(did(r)) })
		if t.Title != t.Name {
			part = titled(t.Title, part)
		}
		fields = append(fields, part...)
	}
	return fields
}

// part is a duration for programs, and its part of whole for people.
func part[T any](name, doc, wholeName string, whole, of func(*T) int64) []table.Field[T] {
	time := table.NsColumn(name, doc, of)
	time.Detail = true
	return []table.Field[T]{
		{Column: table.Column{Name: name, Unit: table.Share, Doc: doc + ", part of " + wholeName}, Cell: func(r *T) table.Cell { return table.ShareCell(of(r), whole(r)) }},
		time,
	}
}

// titled are fields with another title for people.
func titled[T any](title string, fields []table.Field[T]) []table.Field[T] {
	for i := range fields {
		fields[i].Title = title
	}
	return fields
}

// did is what a device did.
func (g *GPU) did() *Activity { return &g.Activity }

// did is what a device did in steps of the kind.
func (s *StepShare) did() *Activity { return &s.Activity }
