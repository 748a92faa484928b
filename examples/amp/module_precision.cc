// Precision module by module, as MMCV's auto_fp16 and force_fp32 give it: a neck that gets its
// coordinates and gives its results in f32, and a head that is f32 as a whole. Exit status: 0 the
// results are right, 1 they are not.
#include <cmath>
#include <cstdio>

#include "halftone/examples/support/setup.h"
#include "halftone/halftone.h"

namespace nn = halftone::nn;
namespace example = halftone::example;
using halftone::DType;
using halftone::Tensor;

// {features [N,4], coordinates [N,1]} -> features, moved by the coordinates
class Neck : public nn::Module {
 public:
  Neck() : fc_(4, 4, {.bias = false}) { register_module("fc", fc_); }
  nn::Values forward(const nn::Values& in) override { return {fc_(in[0]) + (in[1] - 4096.0)}; }

 private:
  nn::Linear fc_;
};

class Step : public nn::Graph {
 public:
  Step() : body_(4, 4, {.bias = false}), head_(4, 1, {.bias = false}) {
    add_module("body", body_);
    add_module("neck", neck_);
    add_module("head", head_);
    config.enable_amp(true, {.dtype = DType::kF16, .trim = false});
    // auto_fp16(apply_to=('features',), out_fp32=True): the coordinates are those not applied to.
    neck_.set_amp({.fp32_inputs = {1}, .fp32_outputs = true});
    head_.set_amp({.fp32 = true});  // force_fp32()
  }
  nn::Values build(const nn::Values& in) override {
    return {head_(neck_({body_(in[0]), in[1]})[0])};
  }

 private:
  nn::Linear body_, head_;
  Neck neck_;
};

absl::Status Run() {
  Step step;
  Tensor identity = Tensor::Zeros(DType::kF32, {4, 4});
  for (int64_t i = 0; i < 4; ++i) identity.set(i * 5, 1);
  HT_RETURN_IF_ERROR(
      step.load_state_dict({{"body.weight", identity},
                            {"neck.fc.weight", identity},
                            {"head.weight", Tensor::Full(DType::kF32, {1, 4}, 0.25)}})
          .status());
  const Tensor features = Tensor::Full(DType::kF32, {2, 4}, 1);
  // Between 4096 and 8192 f16 has every fourth number.
  HT_ASSIGN_OR_RETURN(const auto out,
                      step({features, Tensor::Of(DType::kF32, {2, 1}, {4097, 4098.5})}));
  std::printf("%s", step.amp_table().c_str());
  std::printf("results %g and %g\n", out[0].at(0), out[0].at(1));
  return out[0].at(0) == 2 && out[0].at(1) == 3.5 ? absl::OkStatus()
                                                  : absl::InternalError("expected 2 and 3.5");
}

int main(int argc, char** argv) {
  return example::RunProgram("module_precision", "precision module by module", argc, argv, &Run);
}
