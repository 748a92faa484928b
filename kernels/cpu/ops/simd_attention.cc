// scaled_dot_product_attention. Source: Dao et al.: "FlashAttention", https://arxiv.org/abs/2205.14135,
// algorithm 1, with the order of loops and the late division of Dao: "FlashAttention-2",
// https://arxiv.org/abs/2307.08691, algorithm 1.
//
// A thread takes a tile of queries through all keys, a query a lane: scores are keys times queries,
// so that maxima and sums over keys need no sums of lanes, and the result is made of values as they
// lie, times the weights. Only queries are packed, once a tile. Where the processor has tiles for bf16,
// products of bf16 go through them, with weights rounded to bf16; values are transposed before.
#include <algorithm>
#include <cmath>

#include "halftone/core/threads.h"
#include "halftone/kernels/cpu/ops/attention_steps.h"
#include "halftone/kernels/cpu/simd/attention-inl.h"
#include "halftone/kernels/cpu/simd/bf16_pack-inl.h"
#include "halftone/kernels/cpu/support/attention_shape.h"
#include "halftone/kernels/cpu/support/bf16_tiles.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/supports.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

struct AttentionWork {
  template <typename Plan>
  AttentionWork(const Plan& at, float* work)
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

// Scores, times a scale above 0, become exp(score - max), with the maximum of all keys so far. Gives
// whether what was added up before has to shrink.
HWY_INLINE bool Weigh(const ScoreTile& t, const AttentionWork& w, float scale) {
  const F32Tag d;
  const F32Vec factor = hn::Set(d, scale);
  constexpr int64_t kStep = kLanes;
  bool shrinks = false;
  for (int64_t i = 0; i < t.width; i += kStep) {
    const F32Vec before = LoadVec(w.max + i);
    const F32Vec largest = ColumnMax(w.scores + i, t.width, t.keys, hn::Set(d, kMinusInf));
    const F32Vec max = hn::Max(before, hn::Mul(largest, factor));
    // Without a key so far all exponents are -inf, whatever finite number is taken off.
    const F32Vec shift = hn::IfThenElse(hn::Eq(max, hn::Set(d, kMinusInf)), hn::Zero(d), max);
    const F32Vec shrink = ExpOfScore(hn::Sub(before, shift));
    F32Vec sum = hn::Zero(d);
    for (int64_t j = 0; j < t.keys; ++j) {
      float* const at = w.scores + j * t.width + i;
      const F32Vec weight = ExpOfScore(hn::MulSub(LoadVec(at), factor, shift));
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
  PackTransposed(static_cast<const T*>(head.q) + query * run.q_row, run.q_row, queries, columns,
                 t.width, run.scale, packed);
  std::fill_n(result, v_columns * t.width, 0.0f);
  std::fill_n(w.max, t.width, kMinusInf);
  std::fill_n(w.sum, t.width, 0.0f);
  const int64_t key_end = run.causal ? std::min(run.keys, query + queries) : run.keys;
  for (t.key = 0; t.key < key_end; t.key += kKeyTile) {
    t.keys = std::min(kKeyTile, key_end - t.key);
    const T* const k = static_cast<const T*>(head.k) + t.key * run.k_row;
    const T* const v = static_cast<const T*>(head.v) + t.key * run.v_row;
    Scores(run, head, t, RowsOf(k, run.k_row, t.keys, columns, false, work + at.keys), packed,
           w.scores);
    if (Weigh(t, w, 1.0f) && t.key > 0) MultiplyRows(result, v_columns, t.width, w.shrink);
    if (run.threshold > 0) {
      Keeps(run, head, t, work + at.keeps);
      MapVec2(w.scores, work + at.keeps, w.scores, t.keys * t.width,
              [](F32Vec a, F32Vec b) { return hn::Mul(a, b); });
    }
    const FloatRows values = RowsOf(v, run.v_row, t.keys, v_columns, false, work + at.values);
    AddProduct({v_columns, t.width, t.keys, values.data, 1, values.stride, w.scores, t.width,
                result, t.width});
  }
  float* const row = work + at.row;
  T* y = static_cast<T*>(y_data) + query * run.y_row;
  for (int64_t i = 0; i < queries; ++i, y += run.y_row) {
    // No key, no weight: zeros.
    const float factor = w.sum[i] == 0 ? 0.0f : 1 / w.sum[i];
    for (int64_t c = 0; c < v_columns; ++c) row[c] = result[c * t.width + i] * factor;
    MapVec(row, y, v_columns, [](F32Vec x) { return x; });
    stats.max[query + i] = w.max[i];
    stats.log_sum[query + i] = std::log(w.sum[i]);
  }
}

#if HWY_TARGET == HWY_AVX3

void TurnValues(const AttentionRun& run, const void* v, int64_t keys, BF16* values, float* work) {
  float* const pairs = work + TiledAttentionPlan(run).pairs;
  TransposeRows(static_cast<const BF16*>(v), run.v_row, keys, run.v_columns, kTiledKeys,
                reinterpret_cast<uint32_t*>(pairs), values);
}

void AttentionByTiles(const AttentionRun& run, const AttentionHead& head, const BF16* values,
                      int64_t query, int64_t queries, void* y_data, AttentionStats<float> stats,
                      float* work) {
  const Bf16Tiles tiles;
  const TiledAttentionPlan at(run);
  const AttentionWork w(at, work);
  auto* const packed = reinterpret_cast<uint32_t*>(work + at.queries);
  auto* const pairs = reinterpret_cast<uint32_t*>(work + at.pairs);
  float* const result = work + at.result;
  ScoreTile t{query, queries, WholeLanes(queries), 0, 0};
  const int64_t columns = run.columns, v_columns = run.v_columns;
  TransposeWords(static_cast<const BF16*>(head.q) + query * run.q_row, run.q_row / 2, queries,
                 columns / 2, t.width, packed, t.width);
  std::fill_n(result, v_columns * t.width, 0.0f);
  std::fill_n(w.max, t.width, kMinusInf);
  std::fill_n(w.sum, t.width, 0.0f);
  const F32Vec scale = hn::Set(F32Tag(), run.scale);
  // Masks are for scaled scores; without one the scale can wait for the pass that makes the weights.
  const bool masked = run.causal || head.mask != nullptr;
  const float late = masked || run.scale <= 0 ? 1.0f : run.scale;
  const int64_t key_end = run.causal ? std::min(run.keys, query + queries) : run.keys;
  for (t.key = 0; t.key < key_end; t.key += kTiledKeys) {
    t.keys = std::min(kTiledKeys, key_end - t.key);
    const Bf16Rows k = WholeTiles(static_cast<const BF16*>(head.k) + t.key * run.k_row, run.k_row,
                                  t.keys, columns, reinterpret_cast<BF16*>(work + at.last_keys));
    MultiplyBf16({(t.keys + 15) / 16 * 16, t.width, columns, k.data, k.stride, packed, t.width,
                  w.scores, t.width});
    if (late != run.scale) {
      MapVec(w.scores, w.scores, t.keys * t.width, [scale](F32Vec x) { return hn::Mul(x, scale); });
    }
    MaskScores(run, head, t, w.scores);
    if (Weigh(t, w, late) && t.key > 0) MultiplyRows(result, v_columns, t.width, w.shrink);
    if (run.threshold > 0) {
      Keeps(run, head, t, work + at.keeps);
      MapVec2(w.scores, work + at.keeps, w.scores, t.keys * t.width,
              [](F32Vec a, F32Vec b) { return hn::Mul(a, b); });
    }
    const int64_t depth = (t.keys + 31) / 32 * 32;
    PairRows(w.scores, t.keys, t.width, depth, pairs);
    AddBf16Product({v_columns, t.width, depth, values + t.key * v_columns, kTiledKeys, pairs,
                    t.width, result, t.width});
  }
  float* row = work + at.rows;
  TransposeWords(result, t.width, v_columns, t.width, v_columns, row, v_columns);
  BF16* y = static_cast<BF16*>(y_data) + query * run.y_row;
  for (int64_t i = 0; i < queries; ++i, y += run.y_row, row += v_columns) {
    // No key, no weight: zeros.
    const F32Vec factor = hn::Set(F32Tag(), w.sum[i] == 0 ? 0.0f : 1 / w.sum[i]);
    MapVec(row, y, v_columns, [factor](F32Vec x) { return hn::Mul(x, factor); });
    stats.max[query + i] = w.max[i];
    stats.log_sum[query + i] = std::log(w.sum[i]);
  }
}

TiledAttentionFns FindTiledAttention() { return {AttentionByTiles, TurnValues}; }

#else
TiledAttentionFns FindTiledAttention() { return {nullptr, nullptr}; }
#endif

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
HWY_EXPORT(FindTiledAttention);

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
          static_cast<char*>(args.outputs[0]) + shape_.y().First(number) * size_,
          {max + row, log_sum + row}, static_cast<float*>(args.workspace) + slot * slot_floats_);
    });
  }

 private:
  static constexpr int kMask = 3;

  AttentionShape shape_;
  int64_t size_, tasks_, slots_, slot_floats_;
  AttentionFn fn_;
};

class TiledAttentionKernel : public Kernel {
 public:
  explicit TiledAttentionKernel(const ir::Node& node)
      : shape_(node, kMask),
        tiles_(shape_.heads() * shape_.tiles()),
        slots_(shape_.Slots(tiles_)),
        slot_floats_(TiledAttentionPlan(shape_.run()).size()),
        key_tiles_((shape_.run().keys + kTiledKeys - 1) / kTiledKeys),
        head_values_(key_tiles_ * kTiledKeys * shape_.run().v_columns),
        fns_(HWY_DYNAMIC_DISPATCH(FindTiledAttention)()) {
    workspace_bytes_ = static_cast<size_t>(slots_ * slot_floats_) * sizeof(float) +
                       static_cast<size_t>(shape_.key_heads() * head_values_) * sizeof(BF16);
  }

  // Why a node of bf16 is refused, if it is.
  static absl::Status Supports(const ir::Node& node) {
    HT_RETURN_IF_ERROR(PlainInputs(node));
    InitSimdDispatch();
    if (!HasBf16Tiles() || HWY_DYNAMIC_DISPATCH(FindTiledAttention)().tile == nullptr) {
      return Unimplemented("no tiles for bf16");
    }
    return WholeTilesOfColumns(node);
  }

  void Run(const KernelArgs& args) override {
    AttentionRun run = shape_.run();
    run.run = args.state->run_count;
    auto* const work = static_cast<float*>(args.workspace);
    auto* const values = reinterpret_cast<BF16*>(work + slots_ * slot_floats_);
    const auto* const v = static_cast<const BF16*>(args.inputs[2]);
    shape_.Deal(shape_.key_heads() * key_tiles_, slots_, [&](int64_t task, int64_t slot) {
      const int64_t head = task / key_tiles_, key = task % key_tiles_ * kTiledKeys;
      fns_.turn(run, v + shape_.v().First(head) + key * run.v_row,
                std::min(kTiledKeys, run.keys - key),
                values + head * head_values_ + key * run.v_columns, work + slot * slot_floats_);
    });
    auto* const max = static_cast<float*>(args.outputs[1]);
    float* const log_sum = max + shape_.heads() * run.length;
    const void* const mask = shape_.has_mask() ? args.inputs[kMask] : nullptr;
    shape_.Deal(tiles_, slots_, [&](int64_t task, int64_t slot) {
      const int64_t number = task / shape_.tiles();
      const int64_t query = task % shape_.tiles() * kQueryTile;
      const int64_t row = number * run.length;
      fns_.tile(run, shape_.Head(number, args.inputs[0], args.inputs[1], v, mask),
                values + number / shape_.group() * head_values_, query,
                std::min(kQueryTile, run.length - query),
                static_cast<BF16*>(args.outputs[0]) + shape_.y().First(number),
                {max + row, log_sum + row}, work + slot * slot_floats_);
    });
  }

 private:
  static constexpr int kMask = 3;

  AttentionShape shape_;
  int64_t tiles_, slots_, slot_floats_;
  int64_t key_tiles_, head_values_;
  TiledAttentionFns fns_;
};

}  // namespace

void Register_cpu_simd_attention(KernelRegistry& r) {
  AddNativeCandidate<TiledAttentionKernel>(r, "bf16", "scaled_dot_product_attention",
                                           {DType::kBF16}, TiledAttentionKernel::Supports);
  AddSimdCandidate<AttentionKernel>(r, "scaled_dot_product_attention", PlainInputs);
}

}  // namespace halftone::kernels
#endif
