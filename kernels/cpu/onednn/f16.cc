#include "halftone/kernels/cpu/onednn/f16.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "halftone/core/threads.h"
#include "halftone/kernels/cpu/onednn/primitives.h"

namespace halftone::kernels::onednn {
namespace {

// One thread, as waiting for others would take the same time for either dtype.
class OneThread {
 public:
#ifdef _OPENMP
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }

 private:
  int before_;
#else
  OneThread() = default;
#endif
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;
};

// A product of two matrices that fit into the cache.
class Product {
 public:
  // Empty if the library has none for `dtype`.
  static std::optional<Product> Make(DType dtype) {
    constexpr int64_t kRows = 128, kInner = 256, kColumns = 128;
    const dnnl::memory::desc a = PlainDesc(dtype, {kRows, kInner});
    const dnnl::memory::desc b = PlainDesc(dtype, {kInner, kColumns});
    const dnnl::memory::desc y = PlainDesc(dtype, {kRows, kColumns});
    const auto pd = Describe<dnnl::matmul>(Engine(), dnnl::primitive_attr(), a, b, y);
    if (!pd || IsReference(pd.impl_info_str())) return std::nullopt;
    return Product(
        dnnl::matmul(pd),
        {{DNNL_ARG_SRC, Zeros(a)}, {DNNL_ARG_WEIGHTS, Zeros(b)}, {DNNL_ARG_DST, Zeros(y)}});
  }

  double Seconds() {
    const auto start = std::chrono::steady_clock::now();
    matmul_.execute(Stream(), arguments_);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  using Arguments = std::unordered_map<int, dnnl::memory>;
  Product(dnnl::matmul matmul, Arguments arguments)
      : matmul_(std::move(matmul)), arguments_(std::move(arguments)) {}

  static dnnl::memory Zeros(const dnnl::memory::desc& desc) {
    dnnl::memory memory(desc, Engine());
    std::memset(memory.get_data_handle(), 0, desc.get_size());
    return memory;
  }

  dnnl::matmul matmul_;
  Arguments arguments_;
};

// Throws dnnl::error where the library cannot even describe the product.
double Measure() {
  [[maybe_unused]] const OneThread one_thread;  // without OpenMP there is nothing to set back
  std::optional<Product> f16 = Product::Make(DType::kF16), f32 = Product::Make(DType::kF32);
  if (!f16 || !f32) return std::numeric_limits<double>::infinity();
  // In turn, and the best of each: what an interruption does not touch.
  constexpr int kRounds = 16;
  double low = 1, wide = 1;
  for (int round = 0; round < kRounds; ++round) {
    low = std::min(low, f16->Seconds());
    wide = std::min(wide, f32->Seconds());
  }
  return low / wide;
}

}  // namespace

double F16MatmulCost() {
  static const double cost = [] {
    try {
      return Measure();
    } catch (const dnnl::error&) {
      return std::numeric_limits<double>::infinity();
    }
  }();
  return cost;
}

}  // namespace halftone::kernels::onednn
