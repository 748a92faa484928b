// Seconds per call of single kernels, every CPU candidate of an op beside the others, on Google
// Benchmark: `kernels --benchmark_filter=matmul`. The counters are the op record's cost over the
// time.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "halftone/benchmarks/support/kernel_case.h"
#include "halftone/kernels/kernel.h"

namespace halftone::benchmarks {
namespace {

using kernels::Kernel;
using kernels::KernelRegistry;

// Sizes of mlp and fashion_cnn among them; T is the dtype. The last node is timed.
struct Case {
  const char* name;
  const char* inputs;
  const char* node;
};
constexpr Case kCases[] = {
    {"matmul/128x256x128", "%a: T[128,256], %b: T[128,256]",
     "%y = matmul(%a, %b) {transpose_b=true}"},
    {"matmul/128x12544x128", "%a: T[128,12544], %b: T[128,12544]",
     "%y = matmul(%a, %b) {transpose_b=true}"},
    {"conv2d/32to64x28x28", "%x: T[128,32,28,28], %b: T[64,32,3,3]",
     "%a = relayout(%x) {to=\"nhwc\"} : T[128,32,28,28]{nhwc}\n%y = conv2d(%a, %b) "
     "{padding=[1,1]} : T[128,64,28,28]{nhwc}"},
    {"max_pool2d/64x28x28", "%x: T[128,64,28,28]",
     "%a = relayout(%x) {to=\"nhwc\"} : T[128,64,28,28]{nhwc}\n%y, %i = max_pool2d(%a) "
     "{kernel=[2,2], stride=[2,2]} : T[128,64,14,14]{nhwc}, "
     "u8[128,64,14,14]{nhwc}"},
    {"relu/6M", "%x: T[128,64,28,28]",
     "%a = relayout(%x) {to=\"nhwc\"} : T[128,64,28,28]{nhwc}\n%y = relu(%a) : "
     "T[128,64,28,28]{nhwc}"},
    {"gelu/1M", "%a: T[1024,1024]", "%y = gelu(%a)"},
    {"add/1M", "%a: T[1024,1024], %b: T[1024,1024]", "%y = add(%a, %b)"},
    {"add/bias", "%a: T[1024,1024], %b: T[1024]", "%y = add(%a, %b)"},
    {"cast/1M", "%a: T[1024,1024]", "%y = cast(%a) {to=f32}"},
    {"sum/rows", "%a: T[1024,1024]", "%y = sum(%a) {axes=[1]}"},
    {"sum/columns", "%a: T[1024,1024]", "%y = sum(%a) {axes=[0]}"},
    {"matmul/10x131072x784", "%a: T[131072,10], %b: T[131072,784]",
     "%y = matmul(%a, %b) {transpose_a=true}"},
    {"softmax/1024", "%a: T[1024,1024]", "%y = softmax(%a) {axis=-1}"},
    // Along the last axis and along another.
    {"softmax/1024x3072", "%a: T[1,1024,3072]", "%y = softmax(%a) {axis=2}"},
    {"softmax/3072x1024", "%a: T[1,3072,1024]", "%y = softmax(%a) {axis=1}"},
    {"log_softmax/1024x3072", "%a: T[1,1024,3072]", "%y = log_softmax(%a) {axis=2}"},
    {"log_softmax/3072x1024", "%a: T[1,3072,1024]", "%y = log_softmax(%a) {axis=1}"},
    {"cross_entropy/8732x81", "%a: T[4,8732,81], %t: i64[4,8732]",
     "%y, %s = cross_entropy(%a, %t) {axis=2}"},
    {"cross_entropy/81x8732", "%a: T[4,81,8732], %t: i64[4,8732]",
     "%y, %s = cross_entropy(%a, %t) {axis=1}"},
    {"cross_entropy_grad/8732x81",
     "%a: T[4,8732,81], %t: i64[4,8732], %s: f32[2,4,8732], %d: f32[]",
     "%y = cross_entropy_grad(%a, %t, %s, %d) {axis=2}"},
    {"cross_entropy_grad/81x8732",
     "%a: T[4,81,8732], %t: i64[4,8732], %s: f32[2,4,8732], %d: f32[]",
     "%y = cross_entropy_grad(%a, %t, %s, %d) {axis=1}"},
    {"layer_norm/768", "%a: T[1024,768], %b: f32[768], %c: f32[768]",
     "%y, %m, %r = layer_norm(%a, %b, %c)"},
    {"attention/12x1024x64", "%q: T[12,1024,64], %k: T[12,1024,64], %v: T[12,1024,64]",
     "%y, %s = scaled_dot_product_attention(%q, %k, %v) {scale=0.125}"},
    {"attention_grad/12x1024x64",
     "%q: T[12,1024,64], %k: T[12,1024,64], %v: T[12,1024,64], %y: T[12,1024,64], "
     "%s: f32[2,12,1024], %d: T[12,1024,64]",
     "%a, %b, %c = scaled_dot_product_attention_grad(%q, %k, %v, %y, %s, %d) {scale=0.125}"},
    {"transpose/1M", "%a: T[1024,1024]", "%y = transpose(%a) {perm=[1,0]}"},
};

// One kernel with the buffers that it works on.
class Bench {
 public:
  Bench(const ir::Node& node, std::unique_ptr<Kernel> kernel)
      : node_(node), kernel_(std::move(kernel)) {
    for (int i = 0; i < node.num_inputs(); ++i) {
      buffers_.push_back(OperandValues(node, i, node.input_type(i).num_elements()));
      inputs_.push_back(buffers_.back().raw());
    }
    for (int i = 0; i < node.num_outputs(); ++i) {
      buffers_.push_back(Tensor::Zeros(node.output_type(i).dtype, node.output_type(i).shape));
      outputs_.push_back(buffers_.back().raw());
    }
    buffers_.push_back(
        Tensor::Empty(DType::kU8, Shape{static_cast<int64_t>(kernel_->workspace_bytes())}));
    workspace_ = buffers_.back().raw();
  }

  void Run(benchmark::State& state) {
    kernels::RunState run;
    for (auto _ : state) kernel_->Run({inputs_.data(), outputs_.data(), workspace_, &run});
    const ir::Cost cost = ir::CostOf(node_);
    using benchmark::Counter;
    const auto rate = Counter::kIsIterationInvariantRate;
    state.counters["flop/s"] = Counter(cost.flops, rate);
    state.counters["bytes/s"] = Counter(cost.bytes, rate);
    state.SetLabel(kernel_->implementation());
  }

 private:
  const ir::Node& node_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<Tensor> buffers_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  void* workspace_ = nullptr;
};

// A benchmark for each candidate that takes the case in `dtype`.
absl::Status Register(const Case& c, DType dtype) {
  HT_ASSIGN_OR_RETURN(auto parsed, ParseKernelCase(c.inputs, c.node, dtype));
  const std::shared_ptr<ir::Graph> graph = std::move(parsed);
  const ir::Node& node = *graph->nodes().back();
  const auto& registry = KernelRegistry::Global();
  for (const auto* candidate : registry.Candidates(node.op().name, Device::Kind::kCpu)) {
    if (candidate->tier == kernels::KernelTier::kReference) continue;
    if (!registry.CreateNamed(node, candidate->name).ok()) continue;
    benchmark::RegisterBenchmark(
        Concat(c.name, "/", Name(dtype), "/", candidate->name).c_str(),
        [graph, &node, candidate](benchmark::State& state) {
          Bench(node, KernelRegistry::Global().CreateNamed(node, candidate->name).value())
              .Run(state);
        })
        ->UseRealTime();
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const Case& c : kCases) {
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
      const absl::Status status = Register(c, dtype);
      if (status.ok()) continue;
      std::fprintf(stderr, "kernels: %s: %s\n", c.name, Message(status).c_str());
      return 1;
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace halftone::benchmarks

int main(int argc, char** argv) { return halftone::benchmarks::Main(argc, argv); }
