package stocktest

import (
	"reflect"
	"testing"

	"stocklock/internal/testserver"
)

// TestACopyIsWhatMigrationsMake compares each table, and the version that the copy has.
func TestACopyIsWhatMigrationsMake(t *testing.T) {
	Database(t)
	migrated, copied := OpenAt(t, testserver.Database(t)), Open(t)
	Migrate(t, migrated)
	want, err := Tables(t.Context(), migrated)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Tables(t.Context(), copied)
	if err != nil || len(want) == 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("the tables of a copy are %v, %v, want %v", got, err, want)
	}
	if err := copied.Migrated(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
