// The SIMD half of ops/batch_norm.cc.
#include "halftone/core/dtype.h"
#include "halftone/kernels/cpu/simd/batch_norm_fns.h"
#include "halftone/kernels/cpu/simd/norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

using V = F32Vec;

// As MomentsOf, for channels side by side: row by row into accumulators in the cache.
template <typename T>
void ChannelMoments(const void* data, int64_t stride, int64_t rows, int64_t channels,
                    Moments* moments) {
  const T* x = static_cast<const T*>(data);
  alignas(64) float base[kNormTile] = {}, first[kNormTile] = {}, second[kNormTile] = {};
  for (int64_t r = 0; r < rows; ++r) {
    const T* row = x + r * stride;
    ForRow(channels, [&](auto load, auto store) { store(hn::Add(load(base), load(row)), base); });
  }
  for (int64_t c = 0; c < channels; ++c) base[c] /= static_cast<float>(rows);
  double deviations[kNormTile] = {}, squares[kNormTile] = {};
  const auto flush = [&] {
    FlushSums(first, deviations, channels);
    FlushSums(second, squares, channels);
  };
  for (int64_t r = 0; r < rows; ++r) {
    if (r > 0 && r % kLaneTerms == 0) flush();
    const T* row = x + r * stride;
    ForRow(channels, [&](auto load, auto store) {
      const V v = hn::Sub(load(row), load(base));
      store(hn::Add(load(first), v), first);
      store(hn::Add(load(second), hn::Mul(v, v)), second);
    });
  }
  flush();
  for (int64_t c = 0; c < channels; ++c) {
    const double shift = deviations[c] / static_cast<double>(rows);
    moments[c].mean = base[c] + shift;
    moments[c].m2 = std::max(0.0, squares[c] - deviations[c] * shift);
  }
}

template <typename T>
void ChannelGradSums(const void* x_data, const void* dy_data, int64_t stride, int64_t rows,
                     int64_t channels, const float* mean, double* dy_sums, double* dyx_sums) {
  const T* x = static_cast<const T*>(x_data);
  const T* dy = static_cast<const T*>(dy_data);
  alignas(64) float plain[kNormTile] = {}, scaled[kNormTile] = {};
  std::fill_n(dy_sums, channels, 0.0);
  std::fill_n(dyx_sums, channels, 0.0);
  const auto flush = [&] {
    FlushSums(plain, dy_sums, channels);
    FlushSums(scaled, dyx_sums, channels);
  };
  for (int64_t r = 0; r < rows; ++r) {
    if (r > 0 && r % kLaneTerms == 0) flush();
    const T* x_row = x + r * stride;
    const T* dy_row = dy + r * stride;
    ForRow(channels, [&](auto load, auto store) {
      const V v = load(dy_row);
      store(hn::Add(load(plain), v), plain);
      store(hn::Add(load(scaled), hn::Mul(v, hn::Sub(load(x_row), load(mean)))), scaled);
    });
  }
  flush();
}

HWY_INLINE V Affine(V x, V high, V low, V scale, V shift) {
  return hn::Add(hn::Mul(hn::Sub(hn::Sub(x, high), low), scale), shift);
}
HWY_INLINE V AffineGrad(V x, V dy, V mean, V scale, V offset, V slope) {
  return hn::Mul(scale, hn::Sub(hn::Sub(dy, offset), hn::Mul(hn::Sub(x, mean), slope)));
}

template <typename T>
void ChannelApply(const void* x_data, void* y_data, int64_t rows, int64_t channels,
                  const BatchNormApply& p) {
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  for (int64_t r = 0; r < rows; ++r, x += channels, y += channels) {
    ForRow(channels, [&](auto load, auto store) {
      store(Affine(load(x), load(p.mean_high), load(p.mean_low), load(p.scale), load(p.shift)), y);
    });
  }
}

template <typename T>
void ChannelGradApply(const void* x_data, const void* dy_data, void* dx_data, int64_t rows,
                      int64_t channels, const BatchNormGradApply& p) {
  const T* x = static_cast<const T*>(x_data);
  const T* dy = static_cast<const T*>(dy_data);
  T* dx = static_cast<T*>(dx_data);
  for (int64_t r = 0; r < rows; ++r, x += channels, dy += channels, dx += channels) {
    ForRow(channels, [&](auto load, auto store) {
      store(
          AffineGrad(load(x), load(dy), load(p.mean), load(p.scale), load(p.offset), load(p.slope)),
          dx);
    });
  }
}

template <typename T>
void RowGradSums(const void* x_data, const void* dy_data, int64_t n, float mean, double* dy_sum,
                 double* dyx_sum) {
  const T* x = static_cast<const T*>(x_data);
  const T* dy = static_cast<const T*>(dy_data);
  const V m = hn::Set(F32Tag(), mean);
  *dy_sum = *dyx_sum = 0;
  V plain = hn::Zero(F32Tag()), scaled = plain;
  // In a tail dy is 0, so what x - mean is there does not count.
  ForBlocks(
      n,
      [&](auto load, size_t) {
        const V v = load(dy);
        plain = hn::Add(plain, v);
        scaled = hn::Add(scaled, hn::Mul(v, hn::Sub(load(x), m)));
      },
      [&] {
        *dy_sum += SumOf(plain);
        *dyx_sum += SumOf(scaled);
        plain = scaled = hn::Zero(F32Tag());
      });
}

template <typename T>
void RowApply(const void* x_data, void* y_data, int64_t n, const BatchNormApply& p) {
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  const F32Tag d;
  const V high = hn::Set(d, *p.mean_high), low = hn::Set(d, *p.mean_low);
  const V scale = hn::Set(d, *p.scale), shift = hn::Set(d, *p.shift);
  ForRow(n, [&](auto load, auto store) { store(Affine(load(x), high, low, scale, shift), y); });
}

template <typename T>
void RowGradApply(const void* x_data, const void* dy_data, void* dx_data, int64_t n,
                  const BatchNormGradApply& p) {
  const T* x = static_cast<const T*>(x_data);
  const T* dy = static_cast<const T*>(dy_data);
  T* dx = static_cast<T*>(dx_data);
  const F32Tag d;
  const V mean = hn::Set(d, *p.mean), scale = hn::Set(d, *p.scale);
  const V offset = hn::Set(d, *p.offset), slope = hn::Set(d, *p.slope);
  ForRow(n, [&](auto load, auto store) {
    store(AffineGrad(load(x), load(dy), mean, scale, offset, slope), dx);
  });
}

template <typename T>
BatchNormFns BatchNormFnsOf() {
  return {ChannelMoments<T>, ChannelGradSums<T>, ChannelApply<T>, ChannelGradApply<T>,
          MomentsOf<T>,      RowGradSums<T>,     RowApply<T>,     RowGradApply<T>};
}

BatchNormFns FindBatchNorm(DType dtype) {
  return dtype == DType::kF32   ? BatchNormFnsOf<float>()
         : dtype == DType::kF16 ? BatchNormFnsOf<F16>()
                                : BatchNormFnsOf<BF16>();
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {

HWY_EXPORT(FindBatchNorm);

BatchNormFns FindBatchNormFns(DType dtype) { return HWY_DYNAMIC_DISPATCH(FindBatchNorm)(dtype); }

}  // namespace halftone::kernels
#endif
