// The SIMD half of ops/batch_norm.cc.
#include "halftone/core/dtype.h"
#include "halftone/kernels/cpu/simd/batch_norm_fns.h"
#include "halftone/kernels/cpu/simd/norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

using V = F32Vec;

// Rows of one vector of channels, one behind the other, as those of a block are: what belongs to channels stays in
// registers. Sums go into several, so that none waits for the last one.
HWY_INLINE bool IsOneVector(int64_t stride, int64_t channels) {
  return channels == kLanes && stride == kLanes;
}
constexpr int64_t kSums = 4;
struct VectorSums {
  V sum[kSums];

  HWY_INLINE VectorSums() {
    for (V& s : sum) s = hn::Zero(F32Tag());
  }
  HWY_INLINE void Add(int64_t k, V v) { sum[k] = hn::Add(sum[k], v); }
  HWY_INLINE V All() const { return hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3])); }
  HWY_INLINE void Flush(double* sums) {
    for (V& s : sum) {
      AddToDoubles(s, sums);
      s = hn::Zero(F32Tag());
    }
  }
};
// Calls step(row, number of the sum) for each row, and flush() once in kLaneTerms terms of a sum.
template <typename Step, typename Flush>
HWY_INLINE void ForVectorRows(int64_t rows, const Step& step, const Flush& flush) {
  for (int64_t begin = 0; begin < rows; begin += kSums * kLaneTerms) {
    const int64_t end = std::min(begin + kSums * kLaneTerms, rows);
    int64_t r = begin;
    for (; r + kSums <= end; r += kSums) {
      step(r, 0);
      step(r + 1, 1);
      step(r + 2, 2);
      step(r + 3, 3);
    }
    for (; r < end; ++r) step(r, 0);
    flush();
  }
}

template <typename T>
void VectorMoments(const T* x, int64_t rows, Moments* moments) {
  VectorSums plain;
  ForVectorRows(
      rows, [&](int64_t r, int64_t k) { plain.Add(k, LoadVec(x + r * kLanes)); }, [] {});
  const V base = hn::Div(plain.All(), hn::Set(F32Tag(), static_cast<float>(rows)));
  VectorSums first, second;
  double deviations[kLanes] = {}, squares[kLanes] = {};
  ForVectorRows(
      rows,
      [&](int64_t r, int64_t k) {
        const V v = hn::Sub(LoadVec(x + r * kLanes), base);
        first.Add(k, v);
        second.Add(k, hn::Mul(v, v));
      },
      [&] {
        first.Flush(deviations);
        second.Flush(squares);
      });
  float bases[kLanes];
  hn::StoreU(base, F32Tag(), bases);
  for (size_t c = 0; c < kLanes; ++c) {
    const double shift = deviations[c] / static_cast<double>(rows);
    moments[c].mean = bases[c] + shift;
    moments[c].m2 = std::max(0.0, squares[c] - deviations[c] * shift);
  }
}

template <typename T>
void VectorGradSums(const T* x, const T* dy, int64_t rows, const float* means, double* dy_sums,
                    double* dyx_sums) {
  const V mean = hn::LoadU(F32Tag(), means);
  VectorSums plain, scaled;
  std::fill_n(dy_sums, kLanes, 0.0);
  std::fill_n(dyx_sums, kLanes, 0.0);
  ForVectorRows(
      rows,
      [&](int64_t r, int64_t k) {
        const V v = LoadVec(dy + r * kLanes);
        plain.Add(k, v);
        scaled.Add(k, hn::Mul(v, hn::Sub(LoadVec(x + r * kLanes), mean)));
      },
      [&] {
        plain.Flush(dy_sums);
        scaled.Flush(dyx_sums);
      });
}

// As MomentsOf, for channels side by side: row by row into accumulators in the cache.
template <typename T>
void ChannelMoments(const void* data, int64_t stride, int64_t rows, int64_t channels,
                    Moments* moments) {
  const T* x = static_cast<const T*>(data);
  if (IsOneVector(stride, channels)) return VectorMoments(x, rows, moments);
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
  if (IsOneVector(stride, channels)) return VectorGradSums(x, dy, rows, mean, dy_sums, dyx_sums);
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
  if (channels == kLanes) {
    const F32Tag d;
    const V high = hn::LoadU(d, p.mean_high), low = hn::LoadU(d, p.mean_low);
    const V scale = hn::LoadU(d, p.scale), shift = hn::LoadU(d, p.shift);
    ForRow(rows * kLanes,
           [&](auto load, auto store) { store(Affine(load(x), high, low, scale, shift), y); });
    return;
  }
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
  if (channels == kLanes) {
    const F32Tag d;
    const V mean = hn::LoadU(d, p.mean), scale = hn::LoadU(d, p.scale);
    const V offset = hn::LoadU(d, p.offset), slope = hn::LoadU(d, p.slope);
    ForRow(rows * kLanes, [&](auto load, auto store) {
      store(AffineGrad(load(x), load(dy), mean, scale, offset, slope), dx);
    });
    return;
  }
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
