package main

// wire is the one place that knows the concrete types behind deps.
func wire() deps { return deps{} }
