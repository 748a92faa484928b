// Binary elementwise ops with broadcasting: rows of a StridedLoop, each operand a vector or one
// repeated value.
#include <cstring>

#include "halftone/kernels/cpu/simd/math-inl.h"
#include "halftone/kernels/cpu/simd/vectors-inl.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/cpu/support/strided_loop.h"
#include "halftone/kernels/functors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

template <typename F, typename T>
void BothVary(const void* a, const void* b, void* y, int64_t n) {
  MapVec2(static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(y), n, F());
}
template <typename F, typename T>
void LeftVaries(const void* a, const void* b, void* y, int64_t n) {
  const V right = Splat(static_cast<float>(*static_cast<const T*>(b)));
  MapVec(static_cast<const T*>(a), static_cast<T*>(y), n,
         [right](V left) { return F()(left, right); });
}
template <typename F, typename T>
void RightVaries(const void* a, const void* b, void* y, int64_t n) {
  const V left = Splat(static_cast<float>(*static_cast<const T*>(a)));
  MapVec(static_cast<const T*>(b), static_cast<T*>(y), n,
         [left](V right) { return F()(left, right); });
}

template <typename F, typename T>
PairFn Pick(bool left_varies, bool right_varies) {
  return left_varies == right_varies ? BothVary<F, T>
         : left_varies               ? LeftVaries<F, T>
                                     : RightVaries<F, T>;
}
template <typename F>
PairFn PickDType(DType dtype, bool left, bool right) {
  return dtype == DType::kF32   ? Pick<F, float>(left, right)
         : dtype == DType::kF16 ? Pick<F, F16>(left, right)
                                : Pick<F, BF16>(left, right);
}

// Where neither operand varies the row has one element.
PairFn FindBinary(const char* op, DType dtype, bool left_varies, bool right_varies) {
  struct Row {
    const char* op;
    PairFn (*pick)(DType, bool, bool);
  };
  static constexpr Row kRows[] = {
#define HT_BINARY(op, Name, ...) {#op, PickDType<Name##F>},
#include "halftone/graph/ops/support/elementwise.def"
  };
  for (const Row& row : kRows) {
    if (std::strcmp(row.op, op) == 0) return row.pick(dtype, left_varies, right_varies);
  }
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {
namespace {

HWY_EXPORT(FindBinary);

class BinaryKernel : public Kernel {
 public:
  explicit BinaryKernel(const ir::Node& node)
      : loop_(node.output_type(), {node.input_type(0), node.input_type(1)}),
        size_(static_cast<int64_t>(SizeOf(node.output_type().dtype))) {
    fn_ = HWY_DYNAMIC_DISPATCH(FindBinary)(node.op().name.c_str(), node.output_type().dtype,
                                           loop_.inner_stride(0) != 0, loop_.inner_stride(1) != 0);
    HT_CHECK(fn_ != nullptr, "no SIMD formula for the op");
  }
  void Run(const KernelArgs& args) override {
    loop_.Run(kElementwiseGrain, [&](int64_t to, const StridedLoop::Offsets& from, int64_t n) {
      fn_(static_cast<const char*>(args.inputs[0]) + from[0] * size_,
          static_cast<const char*>(args.inputs[1]) + from[1] * size_,
          static_cast<char*>(args.outputs[0]) + to * size_, n);
    });
  }

 private:
  StridedLoop loop_;
  int64_t size_;
  PairFn fn_;
};

// Inner strides other than 0 and 1 come up only where layouts are mixed.
absl::Status UnitStrides(const ir::Node& node) {
  if (node.input_type(1).dtype != node.input_type(0).dtype) return Unimplemented("dtypes differ");
  const StridedLoop loop(node.output_type(), {node.input_type(0), node.input_type(1)});
  for (int k = 0; k < 2; ++k) {
    if (loop.inner_stride(k) > 1) return Unimplemented("layouts differ");
  }
  return absl::OkStatus();
}

}  // namespace

void Register_cpu_simd_binary(KernelRegistry& r) {
#define HT_BINARY(op, ...) AddSimdCandidate<BinaryKernel>(r, #op, UnitStrides);
#include "halftone/graph/ops/support/elementwise.def"
}

}  // namespace halftone::kernels
#endif
