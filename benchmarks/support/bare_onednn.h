// A training step of a workload as an expert would write it against oneDNN alone: the forward and
// backward primitives in the library's preferred memory formats, prepared once, executed in order.
// No optimizer, no casts, no graph: the floor that a framework's step is compared with.
#pragma once

#include <functional>
#include <string>

namespace halftone::benchmarks {

// A function that runs one step of `workload` ("mlp", "fashion_cnn") in f32 or, with `bf16`, in
// bf16. Empty for another name.
std::function<void()> MakeBareStep(const std::string& workload, bool bf16);

}  // namespace halftone::benchmarks
