package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"example.com/cmctl/pkg/types"
)

// MisfitError says that a part of a document is of another type than a ConfigMap
// has there.
type MisfitError struct {
	Field string // the path to it, or to the list that it is in; empty if it is not known
	Cause string // what is there, and what belongs there
	Err   error  // the decoder's
}

func (e *MisfitError) Error() string {
	if e.Field == "" {
		return e.Cause
	}
	return e.Field + ": " + e.Cause
}

func (e *MisfitError) Unwrap() error { return e.Err }

// misfit words an error of the decoder for people who don't know Go.
func misfit(d types.Document, err error) error {
	var wrong *json.UnmarshalTypeError
	var noTime *time.ParseError
	switch {
	case errors.As(err, &wrong):
		return &MisfitError{Field: strings.TrimPrefix(wrong.Field, "TypeMeta."), Err: err,
			Cause: fmt.Sprintf("%s stands where %s belongs", foundName(wrong.Value), wantedName(wrong.Type))}
	case errors.As(err, &noTime):
		return &MisfitError{Field: holder(d, noTime.Value), Cause: fmt.Sprintf("%q stands where a time such as 2006-01-02T15:04:05Z belongs", noTime.Value), Err: err}
	}
	return err
}

// holder is the field of metadata that holds such a value where a time belongs: the
// decoder doesn't say. Empty if it is none of those that people see.
func holder(d types.Document, value string) string {
	for _, field := range []string{"creationTimestamp", "deletionTimestamp"} {
		if text, _ := d.Value("metadata", field); text == value {
			return "metadata." + field
		}
	}
	return ""
}

// foundName is a JSON value's type, as the decoder calls it, for a person.
func foundName(value string) string {
	switch value {
	case "array":
		return "a list"
	case "object":
		return "a map"
	case "bool":
		return "true or false"
	}
	return "a " + value // a string, a number, a number 1.5
}

// wantedName is a Go type for a person.
func wantedName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return wantedName(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "a string in base64"
		}
		return "a list"
	}
	return "a map"
}
