#include "halftone/kernels/cpu/simd/convert.h"

#include "halftone/core/check.h"
#include "halftone/core/threads.h"
#include "halftone/kernels/cpu/simd/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

template <typename X, typename Y>
void ConvertRange(const void* x, void* y, int64_t n) {
  MapVec(static_cast<const X*>(x), static_cast<Y*>(y), n, [](F32Vec v) { return v; });
}

template <typename X>
ConvertFn FindFrom(DType to) {
  switch (to) {
    case DType::kF32:
      return ConvertRange<X, float>;
    case DType::kF16:
      return ConvertRange<X, F16>;
    case DType::kBF16:
      return ConvertRange<X, BF16>;
    default:
      return nullptr;
  }
}

ConvertFn FindConvert(DType from, DType to) {
  switch (from) {
    case DType::kF32:
      return FindFrom<float>(to);
    case DType::kF16:
      return FindFrom<F16>(to);
    case DType::kBF16:
      return FindFrom<BF16>(to);
    default:
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {

HWY_EXPORT(FindConvert);

ConvertFn ConvertLoop(DType from, DType to) {
  InitSimdDispatch();
  const ConvertFn convert = HWY_DYNAMIC_DISPATCH(FindConvert)(from, to);
  HT_CHECK(convert != nullptr, "Convert: only f32, f16 and bf16");
  return convert;
}

void Convert(const void* from, DType from_dtype, void* to, DType to_dtype, int64_t n) {
  const ConvertFn convert = ConvertLoop(from_dtype, to_dtype);
  constexpr int64_t kGrain = 16384;
  const int64_t from_size = static_cast<int64_t>(SizeOf(from_dtype)),
                to_size = static_cast<int64_t>(SizeOf(to_dtype));
  ParallelFor(0, n, kGrain, [&](int64_t begin, int64_t end) {
    convert(static_cast<const char*>(from) + begin * from_size,
            static_cast<char*>(to) + begin * to_size, end - begin);
  });
}

}  // namespace halftone::kernels
#endif
