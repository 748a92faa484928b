// scaled_dot_product_attention. Source: Dao et al.: "FlashAttention", https://arxiv.org/abs/2205.14135,
// algorithm 1, with the order of loops and the late division of Dao: "FlashAttention-2",
// https://arxiv.org/abs/2307.08691, algorithm 1.
//
// A thread takes a tile of queries through all keys, a query a lane: scores are keys times queries,
// so that maxima and sums over keys need no sums of lanes, and the result is made of values as they
// lie, times the weights. Only queries are packed, once a tile.
#include <algorithm>
#include <cmath>

#include "halftone/core/threads.h"
#include "halftone/kernels/cpu/ops/attention_steps.h"
#include "halftone/kernels/cpu/simd/attention-inl.h"
#include "halftone/kernels/cpu/support/attention_shape.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/supports.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

struct AttentionWork {
  AttentionWork(const AttentionPlan& at, float* work)
      : scores(work + at.scores),
        max(work + at.max),
        sum(work + at.sum),
        shrink(work + at.shrink) {}
  float *scores, *max, *sum, *shrink;
};

// The largest of column i in `rows` rows and `start`.
HWY_INLINE F32Vec ColumnMax(const float* x, int64_t stride, int64_t rows, F32Vec start) {
  F32Vec a = start, b = start;
  int64_t j = 0;
  for (; j + 2 <= rows; j += 2, x += 2 * stride) {
    a = hn::Max(a, LoadVec(x));
    b = hn::Max(b, LoadVec(x + stride));
  }
  if (j < rows) a = hn::Max(a, LoadVec(x));
  return hn::Max(a, b);
}

// Scores become exp(score - max), with the maximum of all keys so far. Gives whether what was added
// up before has to shrink.
HWY_INLINE bool Weigh(const ScoreTile& t, const AttentionWork& w) {
  const F32Tag d;
  constexpr int64_t kStep = kLanes;
  bool shrinks = false;
  for (int64_t i = 0; i < t.width; i += kStep) {
    const F32Vec before = LoadVec(w.max + i);
    const F32Vec max = ColumnMax(w.scores + i, t.width, t.keys, before);
    // Without a key so far all exponents are -inf, whatever finite number is taken off.
    const F32Vec shift = hn::IfThenElse(hn::Eq(max, hn::Set(d, kMinusInf)), hn::Zero(d), max);
    const F32Vec shrink = ExpOfScore(hn::Sub(before, shift));
    F32Vec sum = hn::Zero(d);
    for (int64_t j = 0; j < t.keys; ++j) {
      float* const at = w.scores + j * t.width + i;
      const F32Vec weight = ExpOfScore(hn::Sub(LoadVec(at), shift));
      sum = hn::Add(sum, weight);
      StoreVec(weight, at);
    }
    StoreVec(max, w.max + i);
    StoreVec(hn::MulAdd(LoadVec(w.sum + i), shrink, sum), w.sum + i);
    StoreVec(shrink, w.shrink + i);
    shrinks = shrinks || !hn::AllTrue(d, hn::Eq(shrink, hn::Set(d, 1.0f)));
  }
  return shrinks;
}

// Row r of x [rows, width], times row 0 of y; in place.
HWY_INLINE void MultiplyRows(float* x, int64_t rows, int64_t width, const float* y) {
  for (int64_t r = 0; r < rows; ++r, x += width) {
    MapVec2(x, y, x, width, [](F32Vec a, F32Vec b) { return hn::Mul(a, b); });
  }
}

template <typename T>
void AttentionTile(const AttentionRun& run, const AttentionHead& head, int64_t query,
                   int64_t queries, void* y_data, AttentionStats<float> stats, float* work) {
  const AttentionPlan at(run);
  const AttentionWork w(at, work);
  float *const packed = work + at.queries, *const result = work + at.result;
  ScoreTile t{query, queries, WholeLanes(queries), 0, 0};
  const int64_t columns = run.columns, v_columns = run.v_columns;
  PackTransposed(static_cast<const T*>(head.q) + query * columns, queries, columns, t.width,
                 run.scale, packed);
  std::fill_n(result, v_columns * t.width, 0.0f);
  std::fill_n(w.max, t.width, kMinusInf);
  std::fill_n(w.sum, t.width, 0.0f);
  const int64_t key_end = run.causal ? std::min(run.keys, query + queries) : run.keys;
  for (t.key = 0; t.key < key_end; t.key += kKeyTile) {
    t.keys = std::min(kKeyTile, key_end - t.key);
    const T* const k = static_cast<const T*>(head.k) + t.key * columns;
    const T* const v = static_cast<const T*>(head.v) + t.key * v_columns;
    Scores(run, head, t, RowsOf(k, t.keys, columns, false, work + at.keys), packed, w.scores);
    if (Weigh(t, w) && t.key > 0) MultiplyRows(result, v_columns, t.width, w.shrink);
    if (run.threshold > 0) {
      Keeps(run, head, t, work + at.keeps);
      MapVec2(w.scores, work + at.keeps, w.scores, t.keys * t.width,
              [](F32Vec a, F32Vec b) { return hn::Mul(a, b); });
    }
    const FloatRows values = RowsOf(v, t.keys, v_columns, false, work + at.values);
    AddProduct({v_columns, t.width, t.keys, values.data, 1, values.stride, w.scores, t.width,
                result, t.width});
  }
  float* const row = work + at.row;
  T* y = static_cast<T*>(y_data) + query * v_columns;
  for (int64_t i = 0; i < queries; ++i, y += v_columns) {
    // No key, no weight: zeros.
    const float factor = w.sum[i] == 0 ? 0.0f : 1 / w.sum[i];
    for (int64_t c = 0; c < v_columns; ++c) row[c] = result[c * t.width + i] * factor;
    MapVec(row, y, v_columns, [](F32Vec x) { return x; });
    stats.max[query + i] = w.max[i];
    stats.log_sum[query + i] = std::log(w.sum[i]);
  }
}

AttentionFn FindAttention(DType dtype) {
  return dtype == DType::kF32   ? AttentionTile<float>
         : dtype == DType::kF16 ? AttentionTile<F16>
                                : AttentionTile<BF16>;
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {
namespace {

HWY_EXPORT(FindAttention);

class AttentionKernel : public Kernel {
 public:
  explicit AttentionKernel(const ir::Node& node)
      : shape_(node, kMask),
        size_(static_cast<int64_t>(SizeOf(node.output_type().dtype))),
        tasks_(shape_.heads() * shape_.tiles()),
        slots_(shape_.Slots(tasks_)),
        slot_floats_(AttentionPlan(shape_.run()).size()),
        fn_(HWY_DYNAMIC_DISPATCH(FindAttention)(node.output_type().dtype)) {
    workspace_bytes_ = static_cast<size_t>(slots_ * slot_floats_) * sizeof(float);
  }

  void Run(const KernelArgs& args) override {
    AttentionRun run = shape_.run();
    run.run = args.state->run_count;
    auto* const max = static_cast<float*>(args.outputs[1]);
    float* const log_sum = max + shape_.heads() * run.length;
    const void* const mask = shape_.has_mask() ? args.inputs[kMask] : nullptr;
    shape_.Deal(tasks_, slots_, [&](int64_t task, int64_t slot) {
      const int64_t number = task / shape_.tiles();
      const int64_t query = task % shape_.tiles() * kQueryTile;
      const int64_t row = number * run.length;
      fn_(run, shape_.Head(number, args.inputs[0], args.inputs[1], args.inputs[2], mask), query,
          std::min(kQueryTile, run.length - query),
          static_cast<char*>(args.outputs[0]) + row * run.v_columns * size_,
          {max + row, log_sum + row}, static_cast<float*>(args.workspace) + slot * slot_floats_);
    });
  }

 private:
  static constexpr int kMask = 3;

  AttentionShape shape_;
  int64_t size_, tasks_, slots_, slot_floats_;
  AttentionFn fn_;
};

}  // namespace

void Register_cpu_simd_attention(KernelRegistry& r) {
  AddSimdCandidate<AttentionKernel>(r, "scaled_dot_product_attention", PlainInputs);
}

}  // namespace halftone::kernels
#endif
