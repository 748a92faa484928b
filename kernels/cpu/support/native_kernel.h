// What our own CPU kernels share on the host side: registration of "cpu:<how>:<op>" and the grain
// of elementwise loops. How: "simd" (vectors of f32), "copy" (moves elements of any dtype),
// "scalar" (plain loops for integers and what is rare; tier kFallback).
#pragma once

#include <memory>
#include <string>

#include "halftone/kernels/cpu/simd/targets.h"
#include "halftone/kernels/kernel.h"

namespace halftone::kernels {

// Elements per thread below which a parallel region costs more than it saves: 0.7 us against about
// 0.1 ns an element, and against fetching what the other threads have in their caches (16,384 f32
// elements on two cores: relu_grad 11.6 us alone, 7.9 us shared).
inline constexpr int64_t kElementwiseGrain = 4096;

using PairFn = void (*)(const void* a, const void* b, void* y, int64_t n);

// Unimplemented unless all operands and results share one layout and one dtype (so that they are
// flat arrays of equal order).
absl::Status SameLayouts(const ir::Node& node);

// The general form; `dtypes` is checked on input 0 too, and `create` runs with the dispatch
// initialised. `supports` may be null.
void AddNativeCandidate(
    KernelRegistry& r, const std::string& how, const std::string& op, ir::DTypeSet dtypes,
    std::function<absl::Status(const ir::Node&)> supports,
    std::function<absl::StatusOr<std::unique_ptr<Kernel>>(const ir::Node&)> create);

// K is constructible from the node.
template <typename K>
void AddNativeCandidate(KernelRegistry& r, const std::string& how, const std::string& op,
                        ir::DTypeSet dtypes,
                        std::function<absl::Status(const ir::Node&)> supports) {
  AddNativeCandidate(r, how, op, dtypes, std::move(supports),
                     [](const ir::Node& node) -> absl::StatusOr<std::unique_ptr<Kernel>> {
                       return std::unique_ptr<Kernel>(new K(node));
                     });
}

// K is constructible from the node; f32, f16 and bf16 in input 0.
template <typename K>
void AddSimdCandidate(KernelRegistry& r, const std::string& op,
                      std::function<absl::Status(const ir::Node&)> supports) {
  AddNativeCandidate<K>(r, "simd", op, {DType::kF32, DType::kF16, DType::kBF16},
                        std::move(supports));
}

}  // namespace halftone::kernels
