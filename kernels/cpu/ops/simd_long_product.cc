// matmul over very many rows (long_product.h): f32 over kLaneTerms of them and f64 over those, in
// an order that the shape alone decides. A tile of y stays in registers for a slice of rows and in
// the first-level cache for many.
#include <algorithm>

#include "halftone/core/threads.h"
#include "halftone/kernels/cpu/ops/long_product.h"
#include "halftone/kernels/cpu/simd/vectors-inl.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/supports.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

// Of y in registers: 24 vectors of AVX-512's 32, 12 of AVX2's 16.
constexpr int64_t kBlockRows = 6, kBlockVecs = kLanes == 8 ? 2 : 4;
static_assert(kProductRows % kBlockRows == 0 && kProductColumns % (kBlockVecs * kLanes) == 0);

// a and b: rows of the slice, kProductRows and kProductColumns apart.
template <int64_t kVecs>
HWY_INLINE void AddBlock(const float* a, const float* b, double* sums) {
  const F32Tag d;
  F32Vec acc[kBlockRows][kVecs];
  for (auto& row : acc) {
    for (F32Vec& v : row) v = hn::Zero(d);
  }
  for (int64_t k = 0; k < kLaneTerms; ++k, a += kProductRows, b += kProductColumns) {
    F32Vec right[kVecs];
    for (int64_t v = 0; v < kVecs; ++v) right[v] = LoadVec(b + v * kLanes);
    for (int64_t r = 0; r < kBlockRows; ++r) {
      const F32Vec left = hn::Set(d, a[r]);
      for (int64_t v = 0; v < kVecs; ++v) acc[r][v] = hn::MulAdd(left, right[v], acc[r][v]);
    }
  }
  for (int64_t r = 0; r < kBlockRows; ++r) {
    for (int64_t v = 0; v < kVecs; ++v) {
      AddToDoubles(acc[r][v], sums + r * kProductColumns + v * kLanes);
    }
  }
}

// `rows` rows of `n` elements as f32, `width` apart, zeros behind both.
template <typename T>
void Pack(const T* x, int64_t stride, int64_t rows, int64_t n, int64_t width, float* to) {
  for (int64_t k = 0; k < kLaneTerms; ++k, to += width) {
    if (k < rows) MapVec(x + k * stride, to, n, [](F32Vec v) { return v; });
    const int64_t used = k < rows ? n : 0;
    std::fill(to + used, to + width, 0.0f);
  }
}

template <typename T>
void AddProduct(const ProductSlice& s, int64_t begin, int64_t end, double* sums) {
  alignas(64) float a[kLaneTerms * kProductRows], b[kLaneTerms * kProductColumns];
  const T *const a_data = static_cast<const T*>(s.a), *const b_data = static_cast<const T*>(s.b);
  constexpr int64_t kColumns = kBlockVecs * kLanes, kOne = kLanes;
  for (int64_t k = begin; k < end; k += kLaneTerms) {
    const int64_t rows = std::min(kLaneTerms, end - k);
    Pack(a_data + k * s.a_stride + s.i, s.a_stride, rows, s.rows, kProductRows, a);
    Pack(b_data + k * s.b_stride + s.j, s.b_stride, rows, s.columns, kProductColumns, b);
    for (int64_t c = 0; c < s.columns; c += kColumns) {
      for (int64_t r = 0; r < s.rows; r += kBlockRows) {
        double* to = sums + r * kProductColumns + c;
        if (s.columns - c > kOne) {
          AddBlock<kBlockVecs>(a + r, b + c, to);
        } else {
          AddBlock<1>(a + r, b + c, to);
        }
      }
    }
  }
}

AddProductFn FindAddProduct(DType dtype) {
  return dtype == DType::kF32   ? AddProduct<float>
         : dtype == DType::kF16 ? AddProduct<F16>
                                : AddProduct<BF16>;
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {

bool IsLongProduct(const ir::Node& node) {
  // Rows from which it is worth while: up to there a library's f32 sums of equal terms err by 1e-4
  // at worst. And what y may take in f64 beside itself.
  constexpr int64_t kLong = 32768, kMostResults = int64_t{1} << 22;
  if (node.op().name != "matmul" || !node.attrs().GetBool("transpose_a") ||
      node.attrs().GetBool("transpose_b")) {
    return false;
  }
  const Shape &a = node.input_type(0).shape, &y = node.output_type().shape;
  return a.rank() == 2 && y.rank() == 2 && a[0] >= kLong && y.num_elements() > 0 &&
         y.num_elements() <= kMostResults;
}

namespace {

HWY_EXPORT(FindAddProduct);

// y in tiles; where those are few also the rows in chunks, whose sums are added in order.
class LongProductKernel : public Kernel {
 public:
  explicit LongProductKernel(const ir::Node& node)
      : k_(node.input_type(0).shape[0]),
        m_(node.output_type().shape[0]),
        n_(node.output_type().shape[1]),
        y_dtype_(node.output_type().dtype),
        fn_(HWY_DYNAMIC_DISPATCH(FindAddProduct)(node.input_type(0).dtype)) {
    constexpr int64_t kEnoughTasks = 64, kChunkRows = 4096;
    column_tiles_ = (n_ + kProductColumns - 1) / kProductColumns;
    tiles_ = (m_ + kProductRows - 1) / kProductRows * column_tiles_;
    chunks_ = std::clamp<int64_t>(kEnoughTasks / tiles_, 1, k_ / kChunkRows);
    workspace_bytes_ = static_cast<size_t>(tiles_ * chunks_ * kTile) * sizeof(double);
  }

  void Run(const KernelArgs& args) override {
    auto* sums = static_cast<double*>(args.workspace);
    // All tiles of a thread take one step before the next: what it reads stays in the cache.
    constexpr int64_t kStepRows = 1024;
    static_assert(kStepRows % 32 == 0);
    const int64_t longest = k_ / chunks_ + 1;
    ParallelFor(0, tiles_ * chunks_, 1, [&](int64_t first, int64_t last) {
      std::fill(sums + first * kTile, sums + last * kTile, 0.0);
      for (int64_t step = 0; step < longest; step += kStepRows) {
        for (int64_t unit = first; unit < last; ++unit) {
          const int64_t chunk = unit / tiles_, tile = unit % tiles_;
          const int64_t begin = k_ * chunk / chunks_ + step, end = k_ * (chunk + 1) / chunks_;
          if (begin >= end) continue;
          fn_(Slice(args, tile), begin, std::min(end, begin + kStepRows), sums + unit * kTile);
        }
      }
    });
    ParallelFor(0, tiles_, 1, [&](int64_t first, int64_t last) {
      for (int64_t tile = first; tile < last; ++tile) Store(args, tile, sums);
    });
  }

 private:
  static constexpr int64_t kTile = kProductRows * kProductColumns;

  ProductSlice Slice(const KernelArgs& args, int64_t tile) const {
    const int64_t i = tile / column_tiles_ * kProductRows;
    const int64_t j = tile % column_tiles_ * kProductColumns;
    return {args.inputs[0],
            args.inputs[1],
            m_,
            n_,
            i,
            j,
            std::min(kProductRows, m_ - i),
            std::min(kProductColumns, n_ - j)};
  }

  void Store(const KernelArgs& args, int64_t tile, double* sums) const {
    const ProductSlice s = Slice(args, tile);
    for (int64_t r = 0; r < s.rows; ++r) {
      for (int64_t c = 0; c < s.columns; ++c) {
        double sum = 0;
        for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
          sum += sums[(chunk * tiles_ + tile) * kTile + r * kProductColumns + c];
        }
        StoreDouble(args.outputs[0], y_dtype_, (s.i + r) * n_ + s.j + c, sum);
      }
    }
  }

  int64_t k_, m_, n_;
  DType y_dtype_;
  AddProductFn fn_;
  int64_t column_tiles_, tiles_, chunks_;
};

absl::Status LongAndPlain(const ir::Node& node) {
  if (!IsLongProduct(node)) return Unimplemented("no transposed product over 32768 rows or more");
  return PlainInputs(node);
}

}  // namespace

void Register_cpu_simd_long_product(KernelRegistry& r) {
  AddSimdCandidate<LongProductKernel>(r, "matmul", LongAndPlain);
}

}  // namespace halftone::kernels
#endif
