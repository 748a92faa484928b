// One training step of a rank, for jobs whose ranks are different programs. With OTHER_VERSION it is of that
// version of the library: its own Version takes the place of the one that is linked.
#include <cstdio>

#include "halftone/halftone.h"

#ifdef OTHER_VERSION
namespace halftone {
const char* Version() { return OTHER_VERSION; }
}  // namespace halftone
#endif

namespace halftone {
namespace {

class Line : public nn::Graph {
 public:
  Line() : Graph("line"), fc_(1, 1) {
    add_module("fc", fc_);
    add_optimizer(optim::SGD(parameters(), {.lr = 0.1}));
    config.data_parallel();
  }
  nn::Values build(const nn::Values& in) override {
    const nn::Value loss = nn::mean(fc_(in[0]));
    loss.backward();
    return {loss};
  }

 private:
  nn::Linear fc_;
};

absl::Status TrainOnce() {
  HT_RETURN_IF_ERROR(distributed::Init({.timeout_seconds = 20}));
  Line line;
  return line({Tensor::Full(DType::kF32, {2, 1}, 1)}).status();
}

}  // namespace
}  // namespace halftone

int main() {
  const absl::Status status = halftone::TrainOnce();
  std::printf("rank %d: %s\n", halftone::distributed::Rank(),
              status.ok() ? "trained" : halftone::Message(status).c_str());
  return status.ok() ? 0 : 1;
}
