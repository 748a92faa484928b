// layer_norm and its gradient, row by row; the sums over rows for gamma and beta are those of fixed
// blocks of rows, in f32 over a few rows and in f64 over those, added in order. oneDNN's layer
// normalisation is not used: it keeps the variance where we keep 1 / sqrt(var + eps).
#include <algorithm>
#include <cmath>

#include "halftone/core/threads.h"
#include "halftone/kernels/cpu/simd/norm-inl.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/supports.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

using V = F32Vec;

template <typename T>
void Normalize(const void* x_data, SplitMean mean, float rstd, const float* gamma,
               const float* beta, void* y_data, int64_t n) {
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  const F32Tag d;
  const V high = hn::Set(d, mean.high), low = hn::Set(d, mean.low), scale = hn::Set(d, rstd);
  const auto formula = [&](V v, V g, V b) {
    const V xhat = hn::Mul(hn::Sub(hn::Sub(v, high), low), scale);
    return hn::Add(hn::Mul(xhat, g), b);
  };
  constexpr int64_t kStep = kLanes;
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    StoreVec(formula(LoadVec(x + i), LoadVec(gamma + i), LoadVec(beta + i)), y + i);
  }
  if (i >= n) return;
  const size_t rest = n - i;
  StorePart(formula(LoadPart(x + i, rest), LoadPart(gamma + i, rest), LoadPart(beta + i, rest)),
            y + i, rest);
}

template <typename T>
void NormalizeGrad(const void* x_data, const void* dy_data, float mean, float rstd,
                   const float* gamma, void* dx_data, float* dgamma, float* dbeta, int64_t n) {
  const T* x = static_cast<const T*>(x_data);
  const T* dy = static_cast<const T*>(dy_data);
  T* dx = static_cast<T*>(dx_data);
  const F32Tag d;
  const V m = hn::Set(d, mean), r = hn::Set(d, rstd);
  double g_total = 0, gx_total = 0;
  V g_sum = hn::Zero(d), gx_sum = g_sum;
  // In a tail dy and gamma are 0, so what x - mean is there does not count.
  ForBlocks(
      n,
      [&](auto load, size_t) {
        const V g = hn::Mul(load(dy), load(gamma));
        g_sum = hn::Add(g_sum, g);
        gx_sum = hn::Add(gx_sum, hn::Mul(g, hn::Mul(hn::Sub(load(x), m), r)));
      },
      [&] {
        g_total += SumOf(g_sum);
        gx_total += SumOf(gx_sum);
        g_sum = gx_sum = hn::Zero(d);
      });
  const V g_mean = hn::Set(d, static_cast<float>(g_total / static_cast<double>(n)));
  const V gx_mean = hn::Set(d, static_cast<float>(gx_total / static_cast<double>(n)));
  const auto formula = [&](V v, V dv, V gm, V* dg, V* db) {
    const V xhat = hn::Mul(hn::Sub(v, m), r);
    *dg = hn::Add(*dg, hn::Mul(dv, xhat));
    *db = hn::Add(*db, dv);
    return hn::Mul(r, hn::Sub(hn::Sub(hn::Mul(dv, gm), g_mean), hn::Mul(xhat, gx_mean)));
  };
  constexpr int64_t kStep = kLanes;
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    V dg = LoadVec(dgamma + i), db = LoadVec(dbeta + i);
    StoreVec(formula(LoadVec(x + i), LoadVec(dy + i), LoadVec(gamma + i), &dg, &db), dx + i);
    StoreVec(dg, dgamma + i);
    StoreVec(db, dbeta + i);
  }
  if (i >= n) return;
  const size_t rest = n - i;
  V dg = LoadPart(dgamma + i, rest), db = LoadPart(dbeta + i, rest);
  StorePart(
      formula(LoadPart(x + i, rest), LoadPart(dy + i, rest), LoadPart(gamma + i, rest), &dg, &db),
      dx + i, rest);
  StorePart(dg, dgamma + i, rest);
  StorePart(db, dbeta + i, rest);
}

template <typename T>
LayerNormFns LayerNormFnsOf() {
  return {MomentsOf<T>, Normalize<T>, NormalizeGrad<T>};
}

LayerNormFns FindLayerNormFns(DType dtype) {
  return dtype == DType::kF32   ? LayerNormFnsOf<float>()
         : dtype == DType::kF16 ? LayerNormFnsOf<F16>()
                                : LayerNormFnsOf<BF16>();
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {
namespace {

HWY_EXPORT(FindLayerNormFns);

// x as rows of n normalised elements.
struct Rows {
  explicit Rows(const ir::Node& node)
      : dtype(node.input_type(0).dtype), size(static_cast<int64_t>(SizeOf(dtype))) {
    const Shape& x = node.input_type(0).shape;
    const int split = x.rank() - static_cast<int>(node.attrs().GetInt("axes_count"));
    for (int i = 0; i < x.rank(); ++i) (i < split ? rows : n) *= x[i];
  }
  int64_t grain() const {
    return std::max<int64_t>(1, kElementwiseGrain / 2 / std::max<int64_t>(1, n));
  }
  DType dtype;
  int64_t size, rows = 1, n = 1;
};

class LayerNormKernel : public Kernel {
 public:
  explicit LayerNormKernel(const ir::Node& node)
      : r_(node),
        eps_(node.attrs().GetFloat("eps")),
        fns_(HWY_DYNAMIC_DISPATCH(FindLayerNormFns)(r_.dtype)) {}

  // y may be x in place.
  void Run(const KernelArgs& args) override {
    const auto* gamma = static_cast<const float*>(args.inputs[1]);
    const auto* beta = static_cast<const float*>(args.inputs[2]);
    auto* means = static_cast<float*>(args.outputs[1]);
    auto* rstds = static_cast<float*>(args.outputs[2]);
    ParallelFor(0, r_.rows, r_.grain(), [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) {
        const char* x = static_cast<const char*>(args.inputs[0]) + row * r_.n * r_.size;
        const Moments moments = fns_.moments(x, r_.n);
        means[row] = static_cast<float>(moments.mean);
        rstds[row] =
            static_cast<float>(1 / std::sqrt(moments.m2 / static_cast<double>(r_.n) + eps_));
        fns_.normalize(x, SplitMean(moments.mean), rstds[row], gamma, beta,
                       static_cast<char*>(args.outputs[0]) + row * r_.n * r_.size, r_.n);
      }
    });
  }

 private:
  Rows r_;
  double eps_;
  LayerNormFns fns_;
};

class LayerNormGradKernel : public Kernel {
 public:
  explicit LayerNormGradKernel(const ir::Node& node)
      : r_(node), fns_(HWY_DYNAMIC_DISPATCH(FindLayerNormFns)(r_.dtype)) {
    block_rows_ = std::max(kBlockRows, (r_.rows + kMaxBlocks - 1) / kMaxBlocks);
    blocks_ = (r_.rows + block_rows_ - 1) / block_rows_;
    workspace_bytes_ = 2 * blocks_ * r_.n * (sizeof(double) + sizeof(float));
  }

  void Run(const KernelArgs& args) override {
    const auto* gamma = static_cast<const float*>(args.inputs[2]);
    const auto* means = static_cast<const float*>(args.inputs[3]);
    const auto* rstds = static_cast<const float*>(args.inputs[4]);
    const int64_t n = r_.n;
    auto* sums = static_cast<double*>(args.workspace);
    auto* terms = reinterpret_cast<float*>(sums + 2 * blocks_ * n);
    if (r_.rows == 0) {
      for (int port : {1, 2}) std::fill_n(static_cast<float*>(args.outputs[port]), n, 0.0f);
      return;
    }
    const int64_t grain = std::max<int64_t>(1, r_.grain() / block_rows_);
    ParallelFor(0, blocks_, grain, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        float* dgamma = terms + 2 * b * n;
        std::fill_n(dgamma, 2 * n, 0.0f);
        std::fill_n(sums + 2 * b * n, 2 * n, 0.0);
        const int64_t begin = b * block_rows_, end = std::min(r_.rows, begin + block_rows_);
        for (int64_t row = begin; row < end; ++row) {
          if (row > begin && (row - begin) % kRowTerms == 0) Flush(dgamma, sums + 2 * b * n);
          const int64_t at = row * n * r_.size;
          fns_.grad(static_cast<const char*>(args.inputs[0]) + at,
                    static_cast<const char*>(args.inputs[1]) + at, means[row], rstds[row], gamma,
                    static_cast<char*>(args.outputs[0]) + at, dgamma, dgamma + n, n);
        }
        Flush(dgamma, sums + 2 * b * n);
      }
    });
    for (int port : {1, 2}) {
      auto* result = static_cast<float*>(args.outputs[port]);
      const double* from = sums + (port - 1) * n;
      ParallelFor(0, n, 1024, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
          double sum = 0;
          for (int64_t b = 0; b < blocks_; ++b) sum += from[2 * b * n + i];
          result[i] = static_cast<float>(sum);
        }
      });
    }
  }

 private:
  // Rows that are added in f32: as many as a lane's terms elsewhere.
  static constexpr int64_t kRowTerms = 32, kBlockRows = 16, kMaxBlocks = 128;

  void Flush(float* terms, double* sums) const {
    for (int64_t i = 0; i < 2 * r_.n; ++i) sums[i] += terms[i];
    std::fill_n(terms, 2 * r_.n, 0.0f);
  }

  Rows r_;
  LayerNormFns fns_;
  int64_t block_rows_, blocks_;
};

}  // namespace

void Register_cpu_simd_layer_norm(KernelRegistry& r) {
  AddSimdCandidate<LayerNormKernel>(r, "layer_norm", PlainInputs);
  AddSimdCandidate<LayerNormGradKernel>(r, "layer_norm_grad", PlainInputs);
}

}  // namespace halftone::kernels
#endif
