// where, the comparisons of floats, isfinite: masks made and used.
#include <algorithm>
#include <cstring>

#include "halftone/kernels/cpu/ops/select_fns.h"
#include "halftone/kernels/cpu/simd/math-inl.h"
#include "halftone/kernels/cpu/simd/vectors-inl.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/cpu/support/strided_loop.h"
#include "halftone/kernels/functors-inl.h"
#include "halftone/kernels/supports.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

template <typename T>
void SelectScalar(const uint8_t* condition, const T* a, int64_t a_stride, const T* b,
                  int64_t b_stride, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = condition[i] != 0 ? a[i * a_stride] : b[i * b_stride];
}

template <typename T>
void SelectRow(const uint8_t* condition, const void* a_data, int64_t a_stride, const void* b_data,
               int64_t b_stride, void* y_data, int64_t n) {
  const T* a = static_cast<const T*>(a_data);
  const T* b = static_cast<const T*>(b_data);
  T* y = static_cast<T*>(y_data);
  int64_t i = 0;
  if constexpr (sizeof(T) == 2 || sizeof(T) == 4) {  // a byte widens to these in one instruction
    const hn::ScalableTag<T> d;
    const hn::Rebind<uint8_t, decltype(d)> bytes;
    constexpr int64_t kStep = hn::MaxLanes(d);
    for (; i + kStep <= n; i += kStep) {
      const auto c = hn::PromoteTo(d, hn::LoadU(bytes, condition + i));
      const auto va = a_stride == 0 ? hn::Set(d, *a) : hn::LoadU(d, a + i);
      const auto vb = b_stride == 0 ? hn::Set(d, *b) : hn::LoadU(d, b + i);
      hn::StoreU(hn::IfThenElse(hn::Ne(c, hn::Zero(d)), va, vb), d, y + i);
    }
  }
  SelectScalar(condition + i, a + i * a_stride, a_stride, b + i * b_stride, b_stride, y + i, n - i);
}

SelectFn FindSelect(size_t size) {
  switch (size) {
    case 1:
      return SelectRow<uint8_t>;
    case 2:
      return SelectRow<uint16_t>;
    case 4:
      return SelectRow<uint32_t>;
    default:
      return SelectRow<uint64_t>;
  }
}

HWY_INLINE void StoreMask(M mask, uint8_t* p) {
  const hn::Rebind<uint8_t, I32Tag> d;
  const auto ones = hn::IfThenElseZero(hn::RebindMask(I32Tag(), mask), hn::Set(I32Tag(), 1));
  hn::StoreU(hn::DemoteTo(d, ones), d, p);
}

// y[i] = test(i-th vector of a, of b)
template <typename T, typename Test>
HWY_INLINE void TestRow(const T* a, int64_t a_stride, const T* b, int64_t b_stride, uint8_t* y,
                        int64_t n, const Test& test) {
  constexpr int64_t kStep = kLanes;
  const V a_value = hn::Set(F32Tag(), n > 0 ? static_cast<float>(*a) : 0);
  const V b_value = hn::Set(F32Tag(), n > 0 ? static_cast<float>(*b) : 0);
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    StoreMask(
        test(a_stride == 0 ? a_value : LoadVec(a + i), b_stride == 0 ? b_value : LoadVec(b + i)),
        y + i);
  }
  if (i >= n) return;
  uint8_t part[kLanes];
  StoreMask(test(a_stride == 0 ? a_value : LoadPart(a + i, n - i),
                 b_stride == 0 ? b_value : LoadPart(b + i, n - i)),
            part);
  std::copy_n(part, n - i, y + i);
}

template <typename Test, typename T>
void CompareRow(const void* a, int64_t a_stride, const void* b, int64_t b_stride, uint8_t* y,
                int64_t n) {
  TestRow(static_cast<const T*>(a), a_stride, static_cast<const T*>(b), b_stride, y, n, Test());
}

template <typename Test>
CompareFn CompareOf(DType dtype) {
  return dtype == DType::kF32   ? CompareRow<Test, float>
         : dtype == DType::kF16 ? CompareRow<Test, F16>
                                : CompareRow<Test, BF16>;
}

// Null for an op that is not here.
CompareFn FindCompare(const char* op, DType dtype) {
#define HT_COMPARE(name, Name, ...) \
  if (std::strcmp(op, #name) == 0) return CompareOf<Name##F>(dtype);
#define HT_COMPARE_SWAPPED HT_COMPARE
#include "halftone/graph/ops/support/elementwise.def"
  return nullptr;
}

template <typename T>
void FiniteRow(const void* x, uint8_t* y, int64_t n) {
  TestRow(static_cast<const T*>(x), 1, static_cast<const T*>(x), 1, y, n,
          [](V a, V) { return IsFiniteF()(a); });
}

TestFn FindIsFinite(DType dtype) {
  return dtype == DType::kF32   ? FiniteRow<float>
         : dtype == DType::kF16 ? FiniteRow<F16>
                                : FiniteRow<BF16>;
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {
namespace {

HWY_EXPORT(FindSelect);
HWY_EXPORT(FindCompare);
HWY_EXPORT(FindIsFinite);

std::vector<ir::ValueType> OperandsOf(const ir::Node& node) {
  std::vector<ir::ValueType> types;
  for (const ir::Value& v : node.inputs()) types.push_back(v.type());
  return types;
}

// Inner strides other than 0 and 1 come up only where layouts are mixed.
absl::Status RowsOfUnitStride(const ir::Node& node) {
  const StridedLoop loop(node.output_type(), OperandsOf(node));
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (loop.inner_stride(i) > 1) return Unimplemented("layouts differ");
  }
  return absl::OkStatus();
}

// y may be a or b in place.
class WhereKernel : public Kernel {
 public:
  explicit WhereKernel(const ir::Node& node)
      : loop_(node.output_type(), OperandsOf(node)),
        size_(static_cast<int64_t>(SizeOf(node.output_type().dtype))),
        fn_(HWY_DYNAMIC_DISPATCH(FindSelect)(SizeOf(node.output_type().dtype))) {}

  void Run(const KernelArgs& args) override {
    loop_.Run(kElementwiseGrain, [&](int64_t to, const StridedLoop::Offsets& from, int64_t n) {
      const auto* condition = static_cast<const uint8_t*>(args.inputs[0]) + from[0];
      const char* a = static_cast<const char*>(args.inputs[1]) + from[1] * size_;
      const char* b = static_cast<const char*>(args.inputs[2]) + from[2] * size_;
      char* y = static_cast<char*>(args.outputs[0]) + to * size_;
      if (loop_.inner_stride(0) != 0 || n == 1) {
        fn_(condition, a, loop_.inner_stride(1), b, loop_.inner_stride(2), y, n);
        return;
      }
      const bool first = *condition != 0;
      const char* chosen = first ? a : b;
      if (loop_.inner_stride(first ? 1 : 2) == 0) {
        for (int64_t i = 0; i < n; ++i) std::memmove(y + i * size_, chosen, size_);
      } else if (chosen != y) {
        std::memcpy(y, chosen, n * size_);
      }
    });
  }

 private:
  StridedLoop loop_;
  int64_t size_;
  SelectFn fn_;
};

// Is f(a, b) of the op f(b, a) of the formula? greater(a, b) is less(b, a).
bool IsSwapped(const std::string& op) {
#define HT_COMPARE_SWAPPED(name, ...) \
  if (op == #name) return true;
#include "halftone/graph/ops/support/elementwise.def"
  return false;
}

class CompareKernel : public Kernel {
 public:
  explicit CompareKernel(const ir::Node& node)
      : loop_(node.output_type(), OperandsOf(node)),
        size_(static_cast<int64_t>(SizeOf(node.input_type(0).dtype))),
        first_(IsSwapped(node.op().name) ? 1 : 0),
        fn_(HWY_DYNAMIC_DISPATCH(FindCompare)(node.op().name.c_str(), node.input_type(0).dtype)) {
    HT_CHECK(fn_ != nullptr, "no SIMD formula for the op");
  }
  void Run(const KernelArgs& args) override {
    const int a = first_, b = 1 - first_;
    loop_.Run(kElementwiseGrain, [&](int64_t to, const StridedLoop::Offsets& from, int64_t n) {
      fn_(static_cast<const char*>(args.inputs[a]) + from[a] * size_, loop_.inner_stride(a),
          static_cast<const char*>(args.inputs[b]) + from[b] * size_, loop_.inner_stride(b),
          static_cast<uint8_t*>(args.outputs[0]) + to, n);
    });
  }

 private:
  StridedLoop loop_;
  int64_t size_;
  int first_;
  CompareFn fn_;
};

class IsFiniteKernel : public Kernel {
 public:
  explicit IsFiniteKernel(const ir::Node& node)
      : n_(node.output_type().num_elements()),
        size_(static_cast<int64_t>(SizeOf(node.input_type(0).dtype))),
        fn_(HWY_DYNAMIC_DISPATCH(FindIsFinite)(node.input_type(0).dtype)) {}
  void Run(const KernelArgs& args) override {
    ParallelFor(0, n_, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      fn_(static_cast<const char*>(args.inputs[0]) + begin * size_,
          static_cast<uint8_t*>(args.outputs[0]) + begin, end - begin);
    });
  }

 private:
  int64_t n_, size_;
  TestFn fn_;
};

}  // namespace

void Register_cpu_simd_select(KernelRegistry& r) {
  AddNativeCandidate<WhereKernel>(r, "simd", "where", ir::kAnyDType, RowsOfUnitStride);
#define HT_COMPARE(op, ...) AddSimdCandidate<CompareKernel>(r, #op, RowsOfUnitStride);
#define HT_COMPARE_SWAPPED HT_COMPARE
#define HT_PREDICATE(op, ...) AddSimdCandidate<IsFiniteKernel>(r, #op, LayoutOfInput);
#include "halftone/graph/ops/support/elementwise.def"
}

}  // namespace halftone::kernels
#endif
