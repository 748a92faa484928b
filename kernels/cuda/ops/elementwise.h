// Elementwise ops on the device: y = f(x0, x1), operands broadcast or laid out as they may be.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "halftone/core/dtype.h"
#include "halftone/kernels/cuda/device/map.h"

namespace halftone::cuda {

// The formulas of elementwise.def: kRelu for ReluF.
enum class Formula : uint8_t {
#define HT_UNARY(op, Name, ...) k##Name,
#define HT_PREDICATE HT_UNARY
#define HT_LOGICAL_UNARY HT_UNARY
#define HT_APPROXIMABLE(op, ByErf, ByTanh, ...) k##ByErf, k##ByTanh,
#define HT_GRADIENT HT_UNARY
#define HT_APPROXIMABLE_GRADIENT HT_APPROXIMABLE
#define HT_BINARY HT_UNARY
#define HT_SCALAR_BINARY HT_UNARY
#define HT_COMPARE HT_UNARY
#define HT_LOGICAL HT_UNARY
#include "halftone/graph/ops/support/elementwise.def"
  kIdentity
};

// Which formula an op is.
struct FormulaRow {
  const char* name;  // of the op; "gelu:tanh" for one of its variants
  Formula formula;
  bool swapped = false;  // greater(a, b) is less(b, a)
};
// By FormulaOf (kernels/formula.h); null: none.
const FormulaRow* FindFormula(const std::string& name);

// f32, f16 and bf16, computed in f32; y of the same, or bool where the formula is a comparison.
// kIdentity (a cast) takes u8 and bool too, and gives bool too.
cudaError_t LaunchF32(Formula formula, const MapParams<1>& params, cudaStream_t stream);
cudaError_t LaunchF32(Formula formula, const MapParams<2>& params, cudaStream_t stream);
// What LaunchF32 does for gradients, which are compiled apart.
cudaError_t LaunchGradient(Formula formula, const MapParams<2>& params, cudaStream_t stream);
// f64; and whole numbers and bools, computed in 64 bits that wrap. Any width.
cudaError_t LaunchF64(Formula formula, const MapParams<1>& params, cudaStream_t stream);
cudaError_t LaunchF64(Formula formula, const MapParams<2>& params, cudaStream_t stream);
cudaError_t LaunchWhole(Formula formula, const MapParams<1>& params, cudaStream_t stream);
cudaError_t LaunchWhole(Formula formula, const MapParams<2>& params, cudaStream_t stream);

}  // namespace halftone::cuda
