// scaled_dot_product_attention_grad. Source: Dao: "FlashAttention-2",
// https://arxiv.org/abs/2307.08691, algorithm 2.
//
// A thread takes the keys of a head, or a chunk of them where heads are few, through all queries that
// meet them, a tile of queries after the other: the gradients of its keys and values stay with it,
// and that of a tile of queries is ready at the end of the keys. Chunks leave shares of the latter,
// which are added in order; how many there are depends on the shape alone.
#include <algorithm>
#include <limits>

#include "halftone/core/threads.h"
#include "halftone/kernels/cpu/ops/attention_steps.h"
#include "halftone/kernels/cpu/ops/tiled_attention_grad-inl.h"
#include "halftone/kernels/cpu/simd/attention-inl.h"
#include "halftone/kernels/cpu/support/attention_shape.h"
#include "halftone/kernels/cpu/support/bf16_tiles.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/supports.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

template <typename T>
void AttentionGradOfTile(const AttentionRun& run, const AttentionHead& head,
                         const AttentionGradTile& tile, float* work) {
  const int64_t columns = run.columns, v_columns = run.v_columns;
  const int64_t whole = WholeLanes(columns), v_whole = WholeLanes(v_columns);
  const AttentionGradPlan at(run, whole, v_whole);
  float *const weights = work + at.weights, *const dscores = work + at.dscores;
  float *const max = work + at.max, *const log_sum = work + at.log_sum;
  float *const delta = work + at.delta, *const keeps = work + at.keeps;
  const int64_t queries = tile.queries;
  ScoreTile t{tile.query, queries, WholeLanes(queries), 0, 0};

  const T* const q_data = static_cast<const T*>(head.q) + tile.query * run.q_row;
  const T* const dy_data = static_cast<const T*>(tile.dy) + tile.query * run.y_row;
  const T* const y_data = static_cast<const T*>(tile.y) + tile.query * run.y_row;
  PackTransposed(q_data, run.q_row, queries, columns, t.width, run.scale, work + at.packed_q);
  PackTransposed(dy_data, run.y_row, queries, v_columns, t.width, 1.0f, work + at.packed_dy);
  const FloatRows q = RowsOf(q_data, run.q_row, queries, columns, true, work + at.q);
  const FloatRows dy = RowsOf(dy_data, run.y_row, queries, v_columns, true, work + at.dy);
  // Without a key to see, and behind the queries, weights are exp(score - inf) = 0.
  std::fill_n(max, t.width, std::numeric_limits<float>::infinity());
  std::fill_n(log_sum, t.width, 0.0f);
  std::fill_n(delta, t.width, 0.0f);
  for (int64_t i = 0; i < queries; ++i) {
    const float value = tile.stats.max[tile.query + i];
    if (value == kMinusInf) continue;
    max[i] = value;
    log_sum[i] = tile.stats.log_sum[tile.query + i];
  }
  Deltas(dy_data, y_data, run.y_row, queries, v_columns, delta);

  float* const dq = work + at.dq;
  std::fill_n(dq, queries * whole, 0.0f);
  const int64_t key_end = run.causal ? std::min(tile.key_end, tile.query + queries) : tile.key_end;
  for (t.key = tile.key; t.key < key_end; t.key += kKeyTile) {
    t.keys = std::min(kKeyTile, key_end - t.key);
    const T* const k = static_cast<const T*>(head.k) + t.key * run.k_row;
    const T* const v = static_cast<const T*>(head.v) + t.key * run.v_row;
    const FloatRows keys = RowsOf(k, run.k_row, t.keys, columns, true, work + at.keys);
    const FloatRows values = RowsOf(v, run.v_row, t.keys, v_columns, false, work + at.values);
    Scores(run, head, t, keys, work + at.packed_q, weights);
    Multiply({t.keys, t.width, v_columns, values.data, values.stride, 1, work + at.packed_dy,
              t.width, dscores, t.width});
    const float* dropped = weights;
    if (run.threshold > 0) {
      Keeps(run, head, t, keeps);
      MapVec2(dscores, keeps, dscores, t.keys * t.width,
              [](F32Vec a, F32Vec b) { return hn::Mul(a, b); });
    }
    for (int64_t j = 0; j < t.keys; ++j) {
      float *const weight = weights + j * t.width, *const ds = dscores + j * t.width;
      constexpr int64_t kStep = kLanes;
      for (int64_t i = 0; i < t.width; i += kStep) {
        const F32Vec above = hn::Sub(LoadVec(weight + i), LoadVec(max + i));
        const F32Vec w = ExpOfScore(hn::Sub(above, LoadVec(log_sum + i)));
        StoreVec(w, weight + i);
        StoreVec(hn::Mul(w, hn::Sub(LoadVec(ds + i), LoadVec(delta + i))), ds + i);
      }
    }
    if (run.threshold > 0) {
      MapVec2(weights, keeps, work + at.dropped, t.keys * t.width,
              [](F32Vec a, F32Vec b) { return hn::Mul(a, b); });
      dropped = work + at.dropped;
    }
    const int64_t first = t.key - tile.key;
    AddProduct({t.keys, v_whole, queries, dropped, t.width, 1, dy.data, dy.stride,
                tile.dv + first * v_whole, v_whole});
    AddProduct({t.keys, whole, queries, dscores, t.width, 1, q.data, q.stride,
                tile.dk + first * whole, whole});
    AddProduct({queries, whole, t.keys, dscores, 1, t.width, keys.data, keys.stride, dq, whole});
  }
  if (tile.dq != nullptr) {
    StoreScaled<T>(dq, whole, queries, columns, run.scale,
                   static_cast<T*>(tile.dq) + tile.query * tile.dq_row, tile.dq_row);
  } else {
    StoreScaled<float>(dq, whole, queries, columns, 1.0f, tile.dq_part + tile.query * columns,
                       columns);
  }
}

template <typename T>
AttentionGradFns GradFnsOf() {
  const auto floats = [](const AttentionRun& run, int64_t /*chunk_keys*/) {
    return AttentionGradPlan(run, WholeLanes(run.columns), WholeLanes(run.v_columns)).size();
  };
  return {kQueryTile, floats, AttentionGradOfTile<T>, StoreScaled<T>, kLanes};
}

#if HWY_TARGET == HWY_AVX3
AttentionGradFns FindTiledAttentionGrad() {
  const auto floats = [](const AttentionRun& run, int64_t chunk_keys) {
    return TiledAttentionGradPlan(run, chunk_keys).size();
  };
  return {kTiledQueries, floats, AttentionGradByTiles, StoreScaled<BF16>, kLanes};
}

#else
AttentionGradFns FindTiledAttentionGrad() {
  return {kTiledQueries, nullptr, nullptr, nullptr, kLanes};
}
#endif

AttentionGradFns FindAttentionGrad(DType dtype) {
  return dtype == DType::kF32   ? GradFnsOf<float>()
         : dtype == DType::kF16 ? GradFnsOf<F16>()
                                : GradFnsOf<BF16>();
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {
namespace {

HWY_EXPORT(FindAttentionGrad);
HWY_EXPORT(FindTiledAttentionGrad);

class AttentionGradKernel : public Kernel {
 public:
  explicit AttentionGradKernel(const ir::Node& node)
      : AttentionGradKernel(node,
                            HWY_DYNAMIC_DISPATCH(FindAttentionGrad)(node.output_type().dtype)) {}
  AttentionGradKernel(const ir::Node& node, const AttentionGradFns& fns)
      : shape_(node, kMask),
        size_(static_cast<int64_t>(SizeOf(node.output_type().dtype))),
        fns_(fns) {
    // Tasks from which there is one for every thread of a usual machine, and no chunk of few keys.
    constexpr int64_t kEnoughTasks = 16, kFewestKeys = 4 * kKeyTile;
    const AttentionRun& r = shape_.run();
    whole_ = Whole(r.columns);
    v_whole_ = Whole(r.v_columns);
    const int64_t heads = std::max<int64_t>(1, shape_.key_heads());
    chunks_ = std::max<int64_t>(1, std::min(kEnoughTasks / heads, r.keys / kFewestKeys));
    const int64_t tiles = (r.keys + kKeyTile - 1) / kKeyTile;
    chunk_keys_ = (tiles + chunks_ - 1) / chunks_ * kKeyTile;
    tasks_ = shape_.key_heads() * chunks_;
    slots_ = shape_.Slots(tasks_);
    plan_floats_ = fns_.floats(r, chunk_keys_);
    slot_floats_ = plan_floats_ + chunk_keys_ * (whole_ + v_whole_);
    part_floats_ = chunks_ > 1 ? shape_.query_elements() : 0;
    workspace_bytes_ =
        static_cast<size_t>(slots_ * slot_floats_ + chunks_ * part_floats_) * sizeof(float);
  }

  void Run(const KernelArgs& args) override {
    AttentionRun run = shape_.run();
    run.run = args.state->run_count;
    auto* const work = static_cast<float*>(args.workspace);
    float* const parts = work + slots_ * slot_floats_;
    shape_.Deal(tasks_, slots_, [&](int64_t task, int64_t slot) {
      RunTask(run, args, task / chunks_, task % chunks_, work + slot * slot_floats_, parts);
    });
    if (chunks_ > 1) AddParts(run, args, parts);
  }

 private:
  enum { kY = 3, kStats = 4, kDy = 5, kMask = 6 };

  int64_t Whole(int64_t n) const { return (n + fns_.lanes - 1) / fns_.lanes * fns_.lanes; }

  static char* At(void* data, int64_t bytes) { return static_cast<char*>(data) + bytes; }
  static const char* At(const void* data, int64_t bytes) {
    return static_cast<const char*>(data) + bytes;
  }

  // One chunk of the keys of a head of key and value.
  void RunTask(const AttentionRun& run, const KernelArgs& args, int64_t key_head, int64_t chunk,
               float* work, float* parts) const {
    const int64_t key = chunk * chunk_keys_, key_end = std::min(run.keys, key + chunk_keys_);
    const int64_t keys = std::max<int64_t>(0, key_end - key);
    float* const dk = work + plan_floats_;
    float* const dv = dk + chunk_keys_ * whole_;
    std::fill_n(dk, keys * whole_, 0.0f);
    std::fill_n(dv, keys * v_whole_, 0.0f);
    const void* const mask = shape_.has_mask() ? args.inputs[kMask] : nullptr;
    for (int64_t member = 0; member < shape_.group(); ++member) {
      const int64_t number = key_head * shape_.group() + member;
      const int64_t row = number * run.length;
      AttentionGradTile tile{};
      tile.key = key;
      tile.key_end = key_end;
      const int64_t of_y = shape_.y().First(number) * size_;
      tile.y = At(args.inputs[kY], of_y);
      tile.dy = At(args.inputs[kDy], of_y);
      const float* const max = static_cast<const float*>(args.inputs[kStats]) + row;
      tile.stats = {max, max + shape_.heads() * run.length};
      tile.dk = dk;
      tile.dv = dv;
      if (chunks_ > 1) {
        tile.dq_part = parts + chunk * part_floats_ + row * run.columns;
      } else {
        tile.dq = At(args.outputs[0], shape_.dq().First(number) * size_);
        tile.dq_row = shape_.dq().row;
      }
      const AttentionHead head =
          shape_.Head(number, args.inputs[0], args.inputs[1], args.inputs[2], mask);
      for (tile.query = 0; tile.query < run.length; tile.query += fns_.query_tile) {
        tile.queries = std::min(fns_.query_tile, run.length - tile.query);
        fns_.tile(run, head, tile, work);
      }
    }
    Store(dk, whole_, keys, run.columns, run.scale, args.outputs[1], shape_.dk(), key_head, key);
    Store(dv, v_whole_, keys, run.v_columns, 1.0f, args.outputs[2], shape_.dv(), key_head, key);
  }

  // Rows of n from `row` on of a head of a result.
  void Store(const float* x, int64_t stride, int64_t rows, int64_t n, float scale, void* result,
             const ops::HeadRows& at, int64_t head, int64_t row) const {
    const int64_t element = at.First(head) + row * at.row;
    fns_.store(x, stride, rows, n, scale, At(result, element * size_), at.row);
  }

  void AddParts(const AttentionRun& run, const KernelArgs& args, float* parts) const {
    const int64_t columns = run.columns, rows = shape_.heads() * run.length;
    const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / std::max<int64_t>(1, columns));
    ParallelFor(0, rows, grain, [&](int64_t first, int64_t last) {
      for (int64_t chunk = 1; chunk < chunks_; ++chunk) {
        const float* const part = parts + chunk * part_floats_;
        for (int64_t i = first * columns; i < last * columns; ++i) parts[i] += part[i];
      }
      for (int64_t row = first; row < last; ++row) {
        Store(parts + row * columns, columns, 1, columns, run.scale, args.outputs[0], shape_.dq(),
              row / run.length, row % run.length);
      }
    });
  }

  AttentionShape shape_;
  int64_t size_;
  AttentionGradFns fns_;
  int64_t whole_, v_whole_, chunks_, chunk_keys_, tasks_, slots_;
  int64_t plan_floats_, slot_floats_, part_floats_;
};

class TiledAttentionGradKernel : public AttentionGradKernel {
 public:
  explicit TiledAttentionGradKernel(const ir::Node& node)
      : AttentionGradKernel(node, HWY_DYNAMIC_DISPATCH(FindTiledAttentionGrad)()) {}

  // Why a node of bf16 is refused, if it is.
  static absl::Status Supports(const ir::Node& node) {
    HT_RETURN_IF_ERROR(PlainInputs(node));
    InitSimdDispatch();
    if (!HasBf16Tiles() || HWY_DYNAMIC_DISPATCH(FindTiledAttentionGrad)().tile == nullptr) {
      return Unimplemented("no tiles for bf16");
    }
    return WholeTilesOfColumns(node);
  }
};

}  // namespace

void Register_cpu_simd_attention_grad(KernelRegistry& r) {
  AddNativeCandidate<TiledAttentionGradKernel>(r, "bf16", "scaled_dot_product_attention_grad",
                                               {DType::kBF16}, TiledAttentionGradKernel::Supports);
  AddSimdCandidate<AttentionGradKernel>(r, "scaled_dot_product_attention_grad", PlainInputs);
}

}  // namespace halftone::kernels
#endif
