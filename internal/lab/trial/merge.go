package trial

// Merge makes one result of several runs of the same cell: the first surprising run,
// or else the last, with the number of runs that did as expected.
func Merge(runs []Result) Result {
	merged := runs[len(runs)-1]
	for _, r := range runs {
		if r.Surprise() {
			merged = r
			break
		}
	}
	merged.Runs, merged.Agreed, merged.Seconds, merged.Spoiled = len(runs), 0, 0, nil
	for _, r := range runs {
		merged.Spoiled = append(merged.Spoiled, r.Spoiled...)
		merged.Agreed += r.Agreed
		merged.Seconds = round(merged.Seconds+r.Seconds, 2)
	}
	return merged
}
