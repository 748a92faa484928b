// scaled_dot_product_attention and its gradient, a row of scores at a time.
#include "halftone/graph/ops/support/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "halftone/core/philox.h"
#include "halftone/kernels/reference/support/nn.h"

namespace halftone::kernels {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

IndexMap MapOf(const ops::OperandView& view) {
  return {view.shape.dims(), view.strides, view.offset};
}

// Where elements of operands and results lie, by their number with heads before positions.
struct Places {
  explicit Places(const ops::AttentionViews& views)
      : q(MapOf(views.query)),
        k(MapOf(views.key)),
        v(MapOf(views.value)),
        y(MapOf(views.PlacedView(views.YShape()))),
        dq(MapOf(views.PlacedView(views.query.shape))),
        dk(MapOf(views.PlacedView(views.key.shape))),
        dv(MapOf(views.PlacedView(views.value.shape))) {}
  IndexMap q, k, v, y, dq, dk, dv;
};

// The op's sizes and the elements that a row of scores is made of. Row r of query, [heads, L] of
// all outer extents, meets keys from KeyRow(r) on.
class Attention {
 public:
  Attention(const RefNode& node, int mask_port)
      : Attention(node, mask_port,
                  ops::AttentionViewsOf(node.attrs, node.in(0), node.in(1), node.in(2))) {}
  Attention(const RefNode& node, int mask_port, const ops::AttentionViews& views)
      : at(views),
        scale_(node.attrs.GetFloat("scale")),
        causal_(node.attrs.GetBool("is_causal")),
        p_(node.attrs.GetFloat("dropout_p")),
        seed_(static_cast<uint64_t>(node.attrs.GetInt("seed"))),
        mask_port_(node.has_in(mask_port) ? mask_port : -1),
        f64_(node.inputs[0].dtype == DType::kF64) {
    const Shape &q = views.query.shape, &k = views.key.shape, &v = views.value.shape;
    k_size = k.num_elements(), v_size = v.num_elements();
    const int rank = q.rank();
    for (int i = 0; i + 1 < rank; ++i) rows *= q[i];
    length_ = q[rank - 2];
    keys = k[rank - 2];
    e = q[rank - 1];
    v_columns = v[rank - 1];
    if (rank > 2) heads_ = q[rank - 3], group_ = heads_ / std::max<int64_t>(1, k[rank - 3]);
    // In f32 for all dtypes below f64, as dropout does.
    const double keep = 1 / (1 - p_);
    keep_ = f64_ ? keep : static_cast<float>(keep);
    if (mask_port_ < 0) return;
    bool_mask_ = node.inputs[mask_port].dtype == DType::kBool;
    std::vector<int64_t> scores(q.dims().begin(), q.dims().end());
    scores.back() = keys;
    mask_.push_back(IndexMap::Broadcast(node.in(mask_port), Shape(scores)));
  }

  // The first row of key and value that row r meets.
  int64_t KeyRow(int64_t r) const { return r / length_ / std::max<int64_t>(1, group_) * keys; }
  double scale() const { return scale_; }

  // The scores of row r, into `scores`. Below f64 they are of f32, as the stats are: the gradient
  // takes off the largest of them, exactly.
  void Scores(const RefCall& call, int64_t r, double* scores) const {
    for (int64_t j = 0; j < keys; ++j) {
      double dot = 0;
      for (int64_t i = 0; i < e; ++i) {
        dot += call.Load(0, at.q(r * e + i)) * call.Load(1, at.k((KeyRow(r) + j) * e + i));
      }
      scores[j] = dot * scale_;
      if (causal_ && j > r % length_) scores[j] = -kInf;
      if (mask_port_ >= 0) scores[j] = Masked(call, mask_[0](r * keys + j), scores[j]);
      if (!f64_) scores[j] = static_cast<float>(scores[j]);
    }
  }

  // What dropout multiplies the weights of row r by: 0 or 1 / (1 - p).
  void Keeps(const RefCall& call, int64_t r, double* keeps) const {
    std::fill_n(keeps, keys, 1.0);
    for (int64_t j = 0; p_ > 0 && j < keys; ++j) {
      const auto at = static_cast<uint64_t>(r * keys + j);
      const uint32_t word = PhiloxBlock(seed_, call.run_count(), at / 4)[at % 4];
      keeps[j] = static_cast<double>(UniformFromBits(word)) >= p_ ? keep_ : 0;
    }
  }

  int64_t rows = 1, keys, e, v_columns;
  int64_t k_size, v_size;
  Places at;

 private:
  double Masked(const RefCall& call, int64_t at, double score) const {
    if (!bool_mask_) return score + call.Load(mask_port_, at);
    return call.LoadInt(mask_port_, at) == 0 ? -kInf : score;
  }

  double scale_;
  bool causal_;
  double p_;
  uint64_t seed_;
  int mask_port_;
  bool f64_, bool_mask_ = false;
  double keep_;
  int64_t length_, heads_ = 1, group_ = 1;
  std::vector<IndexMap> mask_;  // one or none
};

RefRun MakeAttention(RefNode& node) {
  const Attention a(node, 3);
  node.workspace_bytes = 2 * sizeof(double) * a.keys;
  return [a](const RefCall& call) {
    double* const weights = call.workspace<double>();
    double* const keeps = weights + a.keys;
    for (int64_t r = 0; r < a.rows; ++r) {
      a.Scores(call, r, weights);
      a.Keeps(call, r, keeps);
      double max = -kInf, sum = 0;
      for (int64_t j = 0; j < a.keys; ++j) max = std::fmax(max, weights[j]);
      const double shift = max == -kInf ? 0 : max;
      for (int64_t j = 0; j < a.keys; ++j) {
        weights[j] = std::exp(weights[j] - shift);
        sum += weights[j];
      }
      for (int64_t c = 0; c < a.v_columns; ++c) {
        double y = 0;
        for (int64_t j = 0; j < a.keys; ++j) {
          const double value = call.Load(2, a.at.v((a.KeyRow(r) + j) * a.v_columns + c));
          y += weights[j] / (max == -kInf ? 1 : sum) * keeps[j] * value;
        }
        call.Store(0, a.at.y(r * a.v_columns + c), y);
      }
      call.Store(1, r, max);
      call.Store(1, a.rows + r, std::log(sum));
    }
  };
}

RefRun MakeAttentionGrad(RefNode& node) {
  enum { kY = 3, kStats = 4, kDy = 5, kMask = 6 };
  const Attention a(node, kMask);
  const int64_t k_size = a.k_size, v_size = a.v_size;
  node.workspace_bytes = sizeof(double) * (2 * a.keys + k_size + v_size);
  return [a, k_size, v_size](const RefCall& call) {
    double* const weights = call.workspace<double>();
    double* const keeps = weights + a.keys;
    double* const dk = keeps + a.keys;
    double* const dv = dk + k_size;
    std::fill_n(dk, k_size + v_size, 0.0);
    for (int64_t r = 0; r < a.rows; ++r) {
      a.Scores(call, r, weights);
      a.Keeps(call, r, keeps);
      const double max = call.Load(kStats, r), log_sum = call.Load(kStats, a.rows + r);
      double delta = 0;
      for (int64_t c = 0; c < a.v_columns; ++c) {
        const int64_t at = a.at.y(r * a.v_columns + c);
        delta += call.Load(kDy, at) * call.Load(kY, at);
      }
      for (int64_t j = 0; j < a.keys; ++j) {
        const double weight = max == -kInf ? 0 : std::exp(weights[j] - max - log_sum);
        const int64_t row = a.KeyRow(r) + j;
        double dweight = 0;
        for (int64_t c = 0; c < a.v_columns; ++c) {
          const double dy = call.Load(kDy, a.at.y(r * a.v_columns + c));
          dweight += dy * call.Load(2, a.at.v(row * a.v_columns + c));
          dv[row * a.v_columns + c] += weight * keeps[j] * dy;
        }
        weights[j] = weight * (keeps[j] * dweight - delta) * a.scale();  // of scale q k^T
        for (int64_t i = 0; i < a.e; ++i) {
          dk[row * a.e + i] += weights[j] * call.Load(0, a.at.q(r * a.e + i));
        }
      }
      for (int64_t i = 0; i < a.e; ++i) {
        double dq = 0;
        for (int64_t j = 0; j < a.keys; ++j) {
          dq += weights[j] * call.Load(1, a.at.k((a.KeyRow(r) + j) * a.e + i));
        }
        call.Store(0, a.at.dq(r * a.e + i), dq);
      }
    }
    for (int64_t i = 0; i < k_size; ++i) call.Store(1, a.at.dk(i), dk[i]);
    for (int64_t i = 0; i < v_size; ++i) call.Store(2, a.at.dv(i), dv[i]);
  };
}

}  // namespace

void Register_reference_attention(KernelRegistry& r) {
  AddReference(r, "scaled_dot_product_attention", ir::kFloats, MakeAttention);
  AddReference(r, "scaled_dot_product_attention_grad", ir::kFloats, MakeAttentionGrad);
}

}  // namespace halftone::kernels
