// Package render writes answers: objects, lists, watch streams and Statuses, in
// the form that the client's Accept header asks for and that Kubernetes would
// choose. It knows no store and sends nothing.
//
//	form, err := render.Negotiate(req.Header, req.URL.Query(), render.Object)
//	if err != nil {
//		form = render.ForError(req.Header, req.URL.Query())
//	}
//	body, err := renderer.Object(form, render.Item{Encoded: stored, Version: "7"})
//	// body has the media type form.ContentType()
//
// Most answers are JSON, and stored objects are JSON: they are copied, with no
// decoding and no encoding. Metadata alone, and the rows of tables, are cut out
// of the stored JSON. Protobuf is made by decoding and encoding, once for each
// version of an object, and kept in a cache of bounded size.
package render
