#include "halftone/benchmarks/support/bare_onednn.h"

#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

#include "halftone/kernels/cpu/onednn/api.h"

namespace halftone::benchmarks {
namespace {

using dnnl::memory;
using kernels::onednn::DimsOf, kernels::onednn::PoolingBackward, kernels::onednn::PoolingForward,
    kernels::onednn::SoftmaxBackward, kernels::onednn::SoftmaxForward;
using Tag = memory::format_tag;
using Type = memory::data_type;
using Args = std::unordered_map<int, memory>;

class Step {
 public:
  explicit Step(Type type) : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_), type_(type) {}

  void Run() {
    for (auto& [primitive, args] : calls_) primitive.execute(stream_, args);
    stream_.wait();
  }

  memory New(const memory::desc& desc) {
    memory m(desc, engine_);
    std::memset(m.get_data_handle(), 0, desc.get_size());
    return m;
  }
  memory New(const memory::dims& dims, Tag tag) { return New(memory::desc(dims, type_, tag)); }
  memory::desc Any(const memory::dims& dims) const { return {dims, type_, Tag::any}; }
  // `m` in the order of `desc`: itself, or a copy made by a reorder at this point of the step.
  memory As(const memory& m, const memory::desc& desc) {
    if (m.get_desc() == desc) return m;
    memory copy = New(desc);
    calls_.emplace_back(dnnl::reorder(m, copy), Args{{DNNL_ARG_FROM, m}, {DNNL_ARG_TO, copy}});
    return copy;
  }

  // Each layer appends its forward now and its backward to `backward_`, which Finish runs through
  // in reverse.
  memory Linear(const memory& x, int64_t out, bool need_dx);
  memory Conv(const memory& x, int64_t out, bool need_dx);
  memory Relu(const memory& x);
  memory MaxPool(const memory& x);
  memory Flatten(const memory& x);
  void Loss(const memory& logits);
  void Finish() {
    for (auto it = backward_.rbegin(); it != backward_.rend(); ++it) (*it)();
  }

 private:
  template <typename Primitive, typename... Operands>
  auto Describe(const Operands&... operands) const {
    return kernels::onednn::Describe<Primitive>(engine_, dnnl::primitive_attr(), operands...);
  }
  template <typename Primitive, typename Forward, typename... Operands>
  auto DescribeBackward(const Forward& forward, const Operands&... operands) const {
    return kernels::onednn::DescribeBackward<Primitive>(engine_, dnnl::primitive_attr(), forward,
                                                        operands...);
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  Type type_;
  std::vector<std::pair<dnnl::primitive, Args>> calls_;
  std::vector<std::function<void()>> backward_;
  std::vector<memory> keep_alive_;
  memory gradient_;  // of the value that the backward pass has reached
};

memory Step::Linear(const memory& x, int64_t out, bool need_dx) {
  const memory::dims dims = DimsOf(x.get_desc());
  const memory::desc bias({out}, Type::f32, Tag::a);
  const auto forward = Describe<dnnl::inner_product_forward>(
      dnnl::prop_kind::forward_training, Any(dims), Any({out, dims[1]}), bias, Any({dims[0], out}));
  const memory xs = As(x, forward.src_desc());
  const memory w = New(forward.weights_desc()), y = New(forward.dst_desc());
  calls_.emplace_back(dnnl::inner_product_forward(forward), Args{{DNNL_ARG_SRC, xs},
                                                                 {DNNL_ARG_WEIGHTS, w},
                                                                 {DNNL_ARG_BIAS, New(bias)},
                                                                 {DNNL_ARG_DST, y}});
  backward_.push_back([=, this] {
    const auto weights = DescribeBackward<dnnl::inner_product_backward_weights>(
        forward, Any(dims), memory::desc({out, dims[1]}, Type::f32, Tag::any), bias,
        Any({dims[0], out}));
    const memory dy = As(gradient_, weights.diff_dst_desc());
    calls_.emplace_back(dnnl::inner_product_backward_weights(weights),
                        Args{{DNNL_ARG_SRC, As(xs, weights.src_desc())},
                             {DNNL_ARG_DIFF_DST, dy},
                             {DNNL_ARG_DIFF_WEIGHTS, New(weights.diff_weights_desc())},
                             {DNNL_ARG_DIFF_BIAS, New(bias)}});
    if (!need_dx) return;
    const auto data = DescribeBackward<dnnl::inner_product_backward_data>(
        forward, Any(dims), Any({out, dims[1]}), Any({dims[0], out}));
    const memory dx = New(data.diff_src_desc());
    calls_.emplace_back(dnnl::inner_product_backward_data(data),
                        Args{{DNNL_ARG_DIFF_DST, As(gradient_, data.diff_dst_desc())},
                             {DNNL_ARG_WEIGHTS, As(w, data.weights_desc())},
                             {DNNL_ARG_DIFF_SRC, dx}});
    gradient_ = dx;
  });
  return y;
}

// 3x3, stride 1, padding 1.
memory Step::Conv(const memory& x, int64_t out, bool need_dx) {
  constexpr auto kDirect = dnnl::algorithm::convolution_direct;
  const memory::dims in = DimsOf(x.get_desc()), to = {in[0], out, in[2], in[3]},
                     kernel = {out, in[1], 3, 3};
  const memory::dims ones = {1, 1};
  const memory::desc bias({out}, Type::f32, Tag::a);
  const auto forward =
      Describe<dnnl::convolution_forward>(dnnl::prop_kind::forward_training, kDirect, Any(in),
                                          Any(kernel), bias, Any(to), ones, ones, ones);
  const memory xs = As(x, forward.src_desc());
  const memory w = New(forward.weights_desc()), y = New(forward.dst_desc());
  calls_.emplace_back(dnnl::convolution_forward(forward), Args{{DNNL_ARG_SRC, xs},
                                                               {DNNL_ARG_WEIGHTS, w},
                                                               {DNNL_ARG_BIAS, New(bias)},
                                                               {DNNL_ARG_DST, y}});
  backward_.push_back([=, this] {
    const auto weights = DescribeBackward<dnnl::convolution_backward_weights>(
        forward, kDirect, Any(in), memory::desc(kernel, Type::f32, Tag::any), bias, Any(to), ones,
        ones, ones);
    calls_.emplace_back(dnnl::convolution_backward_weights(weights),
                        Args{{DNNL_ARG_SRC, As(xs, weights.src_desc())},
                             {DNNL_ARG_DIFF_DST, As(gradient_, weights.diff_dst_desc())},
                             {DNNL_ARG_DIFF_WEIGHTS, New(weights.diff_weights_desc())},
                             {DNNL_ARG_DIFF_BIAS, New(bias)}});
    if (!need_dx) return;
    const auto data = DescribeBackward<dnnl::convolution_backward_data>(
        forward, kDirect, Any(in), Any(kernel), Any(to), ones, ones, ones);
    const memory dx = New(data.diff_src_desc());
    calls_.emplace_back(dnnl::convolution_backward_data(data),
                        Args{{DNNL_ARG_DIFF_DST, As(gradient_, data.diff_dst_desc())},
                             {DNNL_ARG_WEIGHTS, As(w, data.weights_desc())},
                             {DNNL_ARG_DIFF_SRC, dx}});
    gradient_ = dx;
  });
  return y;
}

memory Step::Relu(const memory& x) {
  constexpr auto kRelu = dnnl::algorithm::eltwise_relu;
  const memory::desc desc = x.get_desc();
  const auto forward = kernels::onednn::DescribeEltwise(engine_, kRelu, desc);
  calls_.emplace_back(dnnl::eltwise_forward(forward), Args{{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, x}});
  backward_.push_back([=, this] {
    const memory::desc dy = gradient_.get_desc();
    const auto pd = kernels::onednn::DescribeEltwiseBackward(engine_, forward, kRelu, dy, desc);
    calls_.emplace_back(
        dnnl::eltwise_backward(pd),
        Args{{DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_DST, gradient_}, {DNNL_ARG_DIFF_SRC, gradient_}});
  });
  return x;
}

// 2x2, stride 2.
memory Step::MaxPool(const memory& x) {
  constexpr auto kMax = dnnl::algorithm::pooling_max;
  const memory::dims in = DimsOf(x.get_desc()), to = {in[0], in[1], in[2] / 2, in[3] / 2};
  const memory::dims two = {2, 2}, zero = {0, 0};
  const auto forward = Describe<PoolingForward>(dnnl::prop_kind::forward_training, kMax,
                                                x.get_desc(), Any(to), two, two, zero, zero, zero);
  const memory y = New(forward.dst_desc()), workspace = New(forward.workspace_desc());
  calls_.emplace_back(PoolingForward(forward),
                      Args{{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}, {DNNL_ARG_WORKSPACE, workspace}});
  backward_.push_back([=, this] {
    const auto pd = DescribeBackward<PoolingBackward>(forward, kMax, x.get_desc(), y.get_desc(),
                                                      two, two, zero, zero, zero);
    const memory dx = New(pd.diff_src_desc());
    calls_.emplace_back(PoolingBackward(pd),
                        Args{{DNNL_ARG_DIFF_DST, As(gradient_, pd.diff_dst_desc())},
                             {DNNL_ARG_WORKSPACE, workspace},
                             {DNNL_ARG_DIFF_SRC, dx}});
    gradient_ = dx;
  });
  return y;
}

// inner_product takes the four axes as they are; so flattening is a matter of the next layer's
// dims, and costs a reorder here only where it would for anyone: to plain order and back.
memory Step::Flatten(const memory& x) {
  const memory::dims in = DimsOf(x.get_desc());
  const memory plain = As(x, memory::desc(in, type_, Tag::nchw));
  const memory::desc flat({in[0], in[1] * in[2] * in[3]}, type_, Tag::ab);
  const memory y(flat, engine_, plain.get_data_handle());
  backward_.push_back([=, this] {
    const memory dy = As(gradient_, flat);
    const memory view(memory::desc(in, type_, Tag::nchw), engine_, dy.get_data_handle());
    keep_alive_.push_back(dy);
    gradient_ = As(view, x.get_desc());
  });
  keep_alive_.push_back(plain);
  return y;
}

// log_softmax and its gradient stand for the loss.
void Step::Loss(const memory& logits) {
  const memory::desc desc = logits.get_desc();
  constexpr auto kLog = dnnl::algorithm::softmax_log;
  const auto forward =
      Describe<SoftmaxForward>(dnnl::prop_kind::forward_training, kLog, desc, desc, 1);
  const memory y = New(desc), dy = New(desc), dx = New(desc);
  calls_.emplace_back(SoftmaxForward(forward), Args{{DNNL_ARG_SRC, logits}, {DNNL_ARG_DST, y}});
  backward_.push_back([=, this] {
    const auto pd = DescribeBackward<SoftmaxBackward>(forward, kLog, desc, desc, desc, 1);
    calls_.emplace_back(SoftmaxBackward(pd),
                        Args{{DNNL_ARG_DST, y}, {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_SRC, dx}});
    gradient_ = dx;
  });
}

}  // namespace

std::function<void()> MakeBareStep(const std::string& workload, bool bf16) {
  auto step = std::make_shared<Step>(bf16 ? Type::bf16 : Type::f32);
  if (workload == "mlp") {
    memory x = step->New({128, 256}, Tag::ab);
    x = step->Relu(step->Linear(x, 128, false));
    step->Loss(step->Linear(x, 10, true));
  } else if (workload == "fashion_cnn") {
    memory x = step->New({128, 1, 28, 28}, Tag::nchw);
    x = step->Relu(step->Conv(x, 32, false));
    x = step->MaxPool(step->Relu(step->Conv(x, 64, true)));
    x = step->Relu(step->Linear(step->Flatten(x), 128, true));
    step->Loss(step->Linear(x, 10, true));
  } else {
    return nullptr;
  }
  step->Finish();
  return [step] { step->Run(); };
}

}  // namespace halftone::benchmarks
