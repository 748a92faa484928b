// Parts of a step that choose their precision themselves, whatever mixed precision would do: a function
// that needs the range of f32, one that wants 16 bit, and one that keeps a single operand wide.
// Operators of one's own state all this in their record (examples/outside/squash.cc). Exit status:
// 0 the results are right, 1 they are not.
#include <cmath>
#include <cstdio>

#include "halftone/examples/support/setup.h"
#include "halftone/halftone.h"

namespace nn = halftone::nn;
namespace example = halftone::example;
using halftone::DType;
using halftone::Tensor;

// sqrt(sum(x^2)): squares beyond 255 are no f16. All of it stays f32, x too if it was f16.
nn::Value Length(const nn::Value& x) {
  const nn::KeepFp32 scope;
  return nn::sqrt(nn::sum(x * x, {-1}, true));
}

// Mixed precision would keep exp f32 for its range; who knows that x is at most 0 may allow it.
nn::Value Decay(const nn::Value& x) {
  const nn::AllowLow scope;
  return nn::exp(x);
}

// The distance from a grid of coordinates up to 4096, of which f16 tells every fourth: the cast, which
// stays, keeps this operand and the difference f32. What reads the result may be 16 bit again.
nn::Value FromGrid(const nn::Value& x, const nn::Value& grid) {
  return nn::cast(x, DType::kF32) - grid;
}

class Step : public nn::Graph {
 public:
  Step() { config.enable_amp(true, {.dtype = DType::kF16, .trim = false}); }
  // In: x [2,2], w [2,2], coordinates [2,2].
  nn::Values build(const nn::Values& in) override {
    const nn::Value h = nn::matmul(in[0], in[1]);  // f16
    return {Length(h), nn::matmul(Decay(h * -0.001), in[1]), nn::matmul(FromGrid(h, in[2]), in[1])};
  }
};

absl::Status Run() {
  Step step;
  const auto square = [](const std::vector<double>& values) {
    return Tensor::Of(DType::kF32, {2, 2}, values);
  };
  HT_ASSIGN_OR_RETURN(const auto out, step({square({300, 400, 4096, 0}), square({1, 0, 0, 1}),
                                            square({299, 400, 4095, 1})}));
  std::printf("%s", step.amp_table().c_str());
  std::printf("lengths %g and %g; decay %.4f; from the grid %g and %g\n", out[0].at(0),
              out[0].at(1), out[1].at(0), out[2].at(0), out[2].at(2));
  const bool lengths = out[0].at(0) == 500 && out[0].at(1) == 4096;
  const bool decay = std::abs(out[1].at(0) - std::exp(-0.3)) < 1e-3;
  const bool distances = out[2].at(0) == 1 && out[2].at(2) == 1;
  return lengths && decay && distances
             ? absl::OkStatus()
             : absl::InternalError("expected 500 and 4096, 0.7408, 1 and 1");
}

int main(int argc, char** argv) {
  return example::RunProgram("own_casts", "functions that choose their own precision", argc, argv,
                             &Run);
}
