// What is rare or small, as plain loops on the machine's own types: arithmetic and comparison of
// integers and bools, logic, pow. Broadcasting and any mix of layouts.
#include <algorithm>
#include <cmath>
#include <functional>
#include <type_traits>

#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/cpu/support/strided_loop.h"

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

// Integers wrap: their arithmetic is that of the unsigned type.
template <template <typename> typename F>
struct Wrapping {
  template <typename T>
  T operator()(T a, T b) const {
    using U = std::make_unsigned_t<T>;
    // Unsigned types below int would be promoted to int and could overflow there.
    using Wide = std::conditional_t<(sizeof(U) < sizeof(unsigned)), unsigned, U>;
    return static_cast<T>(F<Wide>()(static_cast<U>(a), static_cast<U>(b)));
  }
};
struct Larger {
  template <typename T>
  T operator()(T a, T b) const {
    return std::max(a, b);
  }
};
struct Smaller {
  template <typename T>
  T operator()(T a, T b) const {
    return std::min(a, b);
  }
};
// A nonzero byte of a bool is true.
template <typename F>
struct OfTruth {
  bool operator()(uint8_t a, uint8_t b) const { return F()(a != 0, b != 0); }
};
struct PowerOf {
  template <typename T>
  float operator()(T a, T b) const {
    return std::pow(static_cast<float>(a), static_cast<float>(b));
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
template <template <typename> typename F>
ScalarRowFn OfNumbers(DType dtype) {
  return dtype == DType::kF64 ? ScalarRow<double, double, F<double>>
                              : OfIntegers<Wrapping<F>>(dtype);
}
ScalarRowFn Quotient(DType) { return ScalarRow<double, double, std::divides<>>; }

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
  return ScalarRow<uint8_t, bool, OfTruth<F>>;
}

ScalarRowFn Power(DType dtype) {
  return dtype == DType::kF32   ? ScalarRow<float, float, PowerOf>
         : dtype == DType::kF16 ? ScalarRow<F16, F16, PowerOf>
                                : ScalarRow<BF16, BF16, PowerOf>;
}

struct ScalarFormula {
  const char* op;
  ir::DTypeSet dtypes;
  ScalarRowFn (*find)(DType);
};

constexpr ir::DTypeSet kWhole{DType::kI64, DType::kI32, DType::kU8};
constexpr ir::DTypeSet kWholeOrF64{DType::kI64, DType::kI32, DType::kU8, DType::kF64};
constexpr ir::DTypeSet kWholeOrBool{DType::kI64, DType::kI32, DType::kU8, DType::kBool};
constexpr ir::DTypeSet kTruth{DType::kBool};

constexpr ScalarFormula kFormulas[] = {
    {"add", kWholeOrF64, OfNumbers<std::plus>},
    {"sub", kWholeOrF64, OfNumbers<std::minus>},
    {"mul", kWholeOrF64, OfNumbers<std::multiplies>},
    {"div", {DType::kF64}, Quotient},
    {"maximum", kWhole, OfIntegers<Larger>},
    {"minimum", kWhole, OfIntegers<Smaller>},
    {"equal", kWholeOrBool, Comparing<std::equal_to<>>},
    {"not_equal", kWholeOrBool, Comparing<std::not_equal_to<>>},
    {"less", kWholeOrBool, Comparing<std::less<>>},
    {"less_equal", kWholeOrBool, Comparing<std::less_equal<>>},
    {"greater", kWholeOrBool, Comparing<std::greater<>>},
    {"greater_equal", kWholeOrBool, Comparing<std::greater_equal<>>},
    {"logical_and", kTruth, OfBools<std::logical_and<>>},
    {"logical_or", kTruth, OfBools<std::logical_or<>>},
    {"pow", {DType::kF32, DType::kF16, DType::kBF16}, Power},
};

// Also logical_not, whose one operand is given twice: not (a and a).
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

struct NotBoth {
  bool operator()(bool a, bool b) const { return !(a && b); }
};

}  // namespace

void Register_cpu_scalar_binary(KernelRegistry& r) {
  for (const ScalarFormula& formula : kFormulas) AddScalarBinary(r, formula);
  AddScalarBinary(r, {"logical_not", kTruth, OfBools<NotBoth>});
}

}  // namespace halftone::kernels
