// gather_grad, embedding_grad and embedding_grad_rows: each row of the result is the sum of the rows
// of dy that its index picks, in their order, in f32 over short blocks and in f64 over those,
// rounded once. The picks are first sorted by row (stable, in the workspace), so that rows are
// independent and the result does not depend on the threads: by counting where there is a result
// for every row, by their digits where there is not.
#include <algorithm>
#include <cstring>
#include <utility>

#include "halftone/core/threads.h"
#include "halftone/graph/ops/support/infer.h"
#include "halftone/kernels/cpu/ops/sum_rows_fn.h"
#include "halftone/kernels/cpu/simd/vectors-inl.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/cpu/support/row_index.h"
#include "halftone/kernels/supports.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

// Of the vectors that `load` reads at the picked rows.
template <typename X, typename Load>
HWY_INLINE F32Vec SumPicked(const X* x, const int64_t* picks, int64_t count, int64_t inner,
                            const Load& load) {
  const auto block = [&](int64_t begin, int64_t end) {
    F32Vec sum = load(x + picks[begin] * inner);
    for (int64_t i = begin + 1; i < end; ++i) sum = hn::Add(sum, load(x + picks[i] * inner));
    return sum;
  };
  if (count <= kLaneTerms) return block(0, count);
  double sums[kLanes];
  std::fill_n(sums, kLanes, -0.0);
  for (int64_t begin = 0; begin < count; begin += kLaneTerms) {
    AddToDoubles(block(begin, std::min(begin + kLaneTerms, count)), sums);
  }
  float rounded[kLanes];
  for (size_t i = 0; i < kLanes; ++i) rounded[i] = static_cast<float>(sums[i]);
  return LoadVec(rounded);
}

template <typename X, typename Y>
void SumRows(const void* data, const int64_t* picks, int64_t count, int64_t inner,
             const void* base_data, void* sums) {
  const X* x = static_cast<const X*>(data);
  const Y* base = static_cast<const Y*>(base_data);
  Y* y = static_cast<Y*>(sums);
  constexpr int64_t kStep = kLanes;
  int64_t j = 0;
  for (; j + kStep <= inner; j += kStep) {
    const F32Vec sum = SumPicked(x + j, picks, count, inner, [](const X* p) { return LoadVec(p); });
    StoreVec(base == nullptr ? sum : hn::Add(LoadVec(base + j), sum), y + j);
  }
  if (j >= inner) return;
  const size_t rest = inner - j;
  const auto load = [rest](const auto* p) { return LoadPart(p, rest); };
  const F32Vec sum = SumPicked(x + j, picks, count, inner, load);
  StorePart(base == nullptr ? sum : hn::Add(load(base + j), sum), y + j, rest);
}

SumRowsFn FindSumRows(DType x, DType y) {
  const bool wide = y == DType::kF32;
  switch (x) {
    case DType::kF16:
      return wide ? SumRows<F16, float> : SumRows<F16, F16>;
    case DType::kBF16:
      return wide ? SumRows<BF16, float> : SumRows<BF16, BF16>;
    default:
      return SumRows<float, float>;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {
namespace {

HWY_EXPORT(FindSumRows);

// dy [outer, picks, inner] to dx [outer, rows, inner].
class ScatterKernel : public Kernel {
 public:
  explicit ScatterKernel(const ir::Node& node)
      : indices_(node.input_type(1)),
        x_size_(static_cast<int64_t>(SizeOf(node.input_type(0).dtype))),
        y_size_(static_cast<int64_t>(SizeOf(node.output_type().dtype))) {
    const Shape& dx = node.output_type().shape;
    const bool embedding = node.op().name == "embedding_grad";
    const int axis = embedding ? 0 : ops::CheckedAxis(node.attrs().GetInt("axis"), dx.rank());
    if (embedding) ignored_ = node.attrs().GetInt("padding_idx");
    has_base_ = embedding && node.num_inputs() > 2;
    for (int i = 0; i < axis; ++i) outer_ *= dx[i];
    rows_ = dx[axis];
    for (int i = axis + 1; i < dx.rank(); ++i) inner_ *= dx[i];
    fn_ = HWY_DYNAMIC_DISPATCH(FindSumRows)(node.input_type(0).dtype, node.output_type().dtype);
    workspace_bytes_ = (rows_ + indices_.count()) * sizeof(int64_t);
  }

  void Run(const KernelArgs& args) override {
    if (!indices_.Check(args.inputs[1], rows_, args.state)) return;
    if (outer_ * rows_ * inner_ == 0) return;
    auto* ends = static_cast<int64_t*>(args.workspace);
    int64_t* picks = ends + rows_;
    Sort(args.inputs[1], ends, picks);
    const char* dy = static_cast<const char*>(args.inputs[0]);
    char* dx = static_cast<char*>(args.outputs[0]);
    const auto* const base = has_base_ ? static_cast<const char*>(args.inputs[2]) : nullptr;
    const int64_t row_bytes = inner_ * y_size_;
    const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / inner_);
    ParallelFor(0, outer_ * rows_, grain, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t row = i % rows_, begin = row == 0 ? 0 : ends[row - 1];
        char* to = dx + i * row_bytes;
        const char* from = base == nullptr ? nullptr : base + i * row_bytes;
        if (ends[row] > begin) {
          fn_(dy + i / rows_ * indices_.count() * inner_ * x_size_, picks + begin,
              ends[row] - begin, inner_, from, to);
        } else if (from == nullptr) {
          std::memset(to, 0, row_bytes);
        } else if (from != to) {
          std::memcpy(to, from, row_bytes);
        }
      }
    });
  }

 private:
  // The picks of row r are picks[ends[r - 1], ends[r]), ascending.
  void Sort(const void* indices, int64_t* ends, int64_t* picks) const {
    std::fill_n(ends, rows_, 0);
    for (int64_t p = 0; p < indices_.count(); ++p) {
      const int64_t row = indices_.At(indices, p);
      if (row != ignored_) ++ends[row];
    }
    int64_t start = 0;
    for (int64_t r = 0; r < rows_; ++r) {
      const int64_t count = ends[r];
      ends[r] = start;
      start += count;
    }
    for (int64_t p = 0; p < indices_.count(); ++p) {
      const int64_t row = indices_.At(indices, p);
      if (row != ignored_) picks[ends[row]++] = p;
    }
  }

  RowIndices indices_;
  int64_t x_size_, y_size_;
  int64_t outer_ = 1, rows_ = 0, inner_ = 1, ignored_ = -1;
  bool has_base_ = false;
  SumRowsFn fn_;
};

// The rows of an embedding's gradient that its ids name.
class GradRowsKernel : public Kernel {
 public:
  explicit GradRowsKernel(const ir::Node& node)
      : indices_(node.input_type(1)),
        rows_(node.attrs().GetInt("rows")),
        ignored_(node.attrs().GetInt("padding_idx")),
        width_(node.output_type(0).shape[1]),
        y_row_bytes_(width_ * static_cast<int64_t>(SizeOf(node.output_type(0).dtype))),
        fn_(HWY_DYNAMIC_DISPATCH(FindSumRows)(node.input_type(0).dtype,
                                              node.output_type(0).dtype)) {
    workspace_bytes_ = 2 * indices_.count() * sizeof(Pick);
  }

  void Run(const KernelArgs& args) override {
    if (!indices_.Check(args.inputs[1], rows_, args.state)) return;
    const int64_t count = indices_.count();
    auto* const first = static_cast<Pick*>(args.workspace);
    const int64_t taken = Take(args.inputs[1], first);
    const Pick* const sorted = Sort(first, first + count, taken);
    // In the half that is free: the positions, and where those of each id end.
    auto* const picks = reinterpret_cast<int64_t*>(sorted == first ? first + count : first);
    int64_t* const ends = picks + count;
    auto* const ids = static_cast<int64_t*>(args.outputs[1]);
    int64_t distinct = 0;
    for (int64_t p = 0; p < taken; ++p) {
      picks[p] = sorted[p].position;
      if (p == 0 || sorted[p].row != sorted[p - 1].row) ids[distinct++] = sorted[p].row;
      ends[distinct - 1] = p + 1;
    }
    std::fill(ids + distinct, ids + count, -1);
    if (width_ > 0) SumRows(args, picks, ends, distinct);
  }

 private:
  struct Pick {
    int64_t row, position;
  };
  static_assert(sizeof(Pick) == 2 * sizeof(int64_t));

  int64_t Take(const void* indices, Pick* picks) const {
    int64_t taken = 0;
    for (int64_t p = 0; p < indices_.count(); ++p) {
      const int64_t row = indices_.At(indices, p);
      if (row != ignored_) picks[taken++] = {row, p};
    }
    return taken;
  }

  // By row, those of a row in order: a pass for each 8 bits of a row. Gives the half with the result.
  const Pick* Sort(Pick* from, Pick* to, int64_t count) const {
    for (int shift = 0; shift < 64 && (rows_ - 1) >> shift > 0; shift += 8) {
      int64_t next[257] = {};
      for (int64_t i = 0; i < count; ++i) ++next[(from[i].row >> shift & 255) + 1];
      for (int digit = 0; digit < 256; ++digit) next[digit + 1] += next[digit];
      for (int64_t i = 0; i < count; ++i) to[next[from[i].row >> shift & 255]++] = from[i];
      std::swap(from, to);
    }
    return from;
  }

  void SumRows(const KernelArgs& args, const int64_t* picks, const int64_t* ends,
               int64_t distinct) const {
    const char* dy = static_cast<const char*>(args.inputs[0]);
    char* rows = static_cast<char*>(args.outputs[0]);
    const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / width_);
    ParallelFor(0, indices_.count(), grain, [&](int64_t first, int64_t last) {
      for (int64_t k = first; k < last; ++k) {
        char* to = rows + k * y_row_bytes_;
        if (k >= distinct) {
          std::memset(to, 0, y_row_bytes_);
          continue;
        }
        const int64_t begin = k == 0 ? 0 : ends[k - 1];
        fn_(dy, picks + begin, ends[k] - begin, width_, nullptr, to);
      }
    });
  }

  RowIndices indices_;
  int64_t rows_, ignored_, width_, y_row_bytes_;
  SumRowsFn fn_;
};

}  // namespace

void Register_cpu_simd_scatter(KernelRegistry& r) {
  AddSimdCandidate<ScatterKernel>(r, "gather_grad", PlainInputs);
  AddSimdCandidate<ScatterKernel>(r, "embedding_grad", PlainInputs);
  AddSimdCandidate<GradRowsKernel>(r, "embedding_grad_rows", PlainInputs);
}

}  // namespace halftone::kernels
#endif
