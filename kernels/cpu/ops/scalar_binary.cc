// What is rare or small, as plain loops on the machine's own types: arithmetic and comparison of
// integers and bools, logic, pow. Broadcasting and any mix of layouts.
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/cpu/support/strided_loop.h"
#include "halftone/kernels/double_functors-inl.h"

namespace halftone::kernels {
namespace {

// y[i] = f(a[i * a_stride], b[i * b_stride])
using ScalarRowFn = void (*)(const void* a, int64_t a_stride, const void* b, int64_t b_stride,
                             void* y, int64_t n);

template <typename T, typename R, typename F>
void ScalarRow(const void* a_data, int64_t a_stride, const void* b_data, int64_t b_stride,
               void* y_data, int64_t n) {
  const T* a = static_cast<const T*>(a_data);
  const T* b = static_cast<const T*>(b_data);
  R* y = static_cast<R*>(y_data);
  for (int64_t i = 0; i < n; ++i) y[i] = R(F()(a[i * a_stride], b[i * b_stride]));
}

// A nonzero byte of a bool is true.
template <typename F>
struct OfTruth {
  bool operator()(uint8_t a, uint8_t b) const { return F()(a != 0, b != 0); }
};
// f(b, a).
template <typename F>
struct Swapped {
  template <typename T>
  auto operator()(T a, T b) const {
    return F()(b, a);
  }
};
// f(a) of two operands.
template <typename F>
struct OfFirst {
  template <typename T>
  auto operator()(T a, T) const {
    return F()(a);
  }
};
// In f32, rounded once to R.
template <typename F>
struct InF32 {
  template <typename T>
  float operator()(T a, T b) const {
    return F()(static_cast<float>(a), static_cast<float>(b));
  }
};

template <typename F>
ScalarRowFn OfIntegers(DType dtype) {
  switch (dtype) {
    case DType::kI64:
      return ScalarRow<int64_t, int64_t, F>;
    case DType::kI32:
      return ScalarRow<int32_t, int32_t, F>;
    case DType::kU8:
      return ScalarRow<uint8_t, uint8_t, F>;
    default:
      return nullptr;
  }
}

// f64 passes through training for a few scalars only (1 / loss scale).
template <typename F>
ScalarRowFn OfDoubles(DType) {
  return ScalarRow<double, double, F>;
}
template <typename Real, typename Whole>
ScalarRowFn OfNumbers(DType dtype) {
  return dtype == DType::kF64 ? OfDoubles<Real>(dtype) : OfIntegers<Whole>(dtype);
}

template <typename F>
ScalarRowFn Comparing(DType dtype) {
  switch (dtype) {
    case DType::kI64:
      return ScalarRow<int64_t, bool, F>;
    case DType::kI32:
      return ScalarRow<int32_t, bool, F>;
    case DType::kU8:
      return ScalarRow<uint8_t, bool, F>;
    case DType::kBool:
      return ScalarRow<uint8_t, bool, OfTruth<F>>;
    default:
      return nullptr;
  }
}

template <typename F>
ScalarRowFn OfBools(DType) {
  return ScalarRow<uint8_t, bool, F>;
}

template <typename F>
ScalarRowFn OfF32AndLow(DType dtype) {
  return dtype == DType::kF32   ? ScalarRow<float, float, InF32<F>>
         : dtype == DType::kF16 ? ScalarRow<F16, F16, InF32<F>>
                                : ScalarRow<BF16, BF16, InF32<F>>;
}

struct ScalarFormula {
  const char* op;
  ir::DTypeSet dtypes;
  ScalarRowFn (*find)(DType);
};

constexpr ir::DTypeSet kWholeOrF64{DType::kI64, DType::kI32, DType::kU8, DType::kF64};
constexpr ir::DTypeSet kWholeOrBool{DType::kI64, DType::kI32, DType::kU8, DType::kBool};

constexpr ScalarFormula kFormulas[] = {
#define HT_BINARY(op, Name, ...) {#op, {DType::kF64}, OfDoubles<in_double::Name##F>},
#define HT_WHOLE_BINARY(op, Name, ...) \
  {#op, kWholeOrF64, OfNumbers<in_double::Name##F, whole::Name##F>},
#define HT_SCALAR_BINARY(op, Name, ...) \
  {#op, {DType::kF32, DType::kF16, DType::kBF16}, OfF32AndLow<in_double::Name##F>},
#define HT_COMPARE(op, Name, ...) {#op, kWholeOrBool, Comparing<whole::Name##F>},
#define HT_COMPARE_SWAPPED(op, Name, ...) {#op, kWholeOrBool, Comparing<Swapped<whole::Name##F>>},
#define HT_LOGICAL(op, Name, ...) {#op, {DType::kBool}, OfBools<whole::Name##F>},
#define HT_LOGICAL_UNARY(op, Name, ...) {#op, {DType::kBool}, OfBools<OfFirst<whole::Name##F>>},
#include "halftone/graph/ops/support/elementwise.def"
};

// An op of one operand is given it twice.
class ScalarBinaryKernel : public Kernel {
 public:
  ScalarBinaryKernel(const ir::Node& node, ScalarRowFn fn)
      : loop_(node.output_type(), {node.input_type(0), node.input_type(node.num_inputs() - 1)}),
        second_(node.num_inputs() - 1),
        x_size_(static_cast<int64_t>(SizeOf(node.input_type(0).dtype))),
        y_size_(static_cast<int64_t>(SizeOf(node.output_type().dtype))),
        fn_(fn) {}

  void Run(const KernelArgs& args) override {
    loop_.Run(kElementwiseGrain, [&](int64_t to, const StridedLoop::Offsets& from, int64_t n) {
      fn_(static_cast<const char*>(args.inputs[0]) + from[0] * x_size_, loop_.inner_stride(0),
          static_cast<const char*>(args.inputs[second_]) + from[1] * x_size_, loop_.inner_stride(1),
          static_cast<char*>(args.outputs[0]) + to * y_size_, n);
    });
  }

 private:
  StridedLoop loop_;
  int second_;
  int64_t x_size_, y_size_;
  ScalarRowFn fn_;
};

void AddScalarBinary(KernelRegistry& r, const ScalarFormula& formula) {
  AddNativeCandidate(
      r, "scalar", formula.op, formula.dtypes, nullptr,
      [find = formula.find](const ir::Node& node) -> absl::StatusOr<std::unique_ptr<Kernel>> {
        return std::make_unique<ScalarBinaryKernel>(node, find(node.input_type(0).dtype));
      });
}

}  // namespace

void Register_cpu_scalar_binary(KernelRegistry& r) {
  for (const ScalarFormula& formula : kFormulas) AddScalarBinary(r, formula);
}

}  // namespace halftone::kernels
