// Memory stays flat over long runs: 20,000 steps of one signature, 1,000 compilations, and shapes
// that grow.
#include <gtest/gtest.h>

#include <fstream>

#include "halftone/core/allocator.h"
#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/sanitizers.h"

namespace halftone::nn {
namespace {

// Resident memory of this process in KiB, as Linux tells it.
int64_t ResidentKib() {
  std::ifstream file("/proc/self/status");
  std::string word;
  int64_t kib = 0;
  while (file >> word) {
    if (word == "VmRSS:") {
      file >> kib;
      return kib;
    }
  }
  return 0;
}

class SoakModel : public FnGraph {
 public:
  SoakModel() : net_(Linear(8, 16), ReLU(), Linear(16, 4)) {
    fn = [this](const Values& in) -> Values {
      const Value loss = cross_entropy(net_(in[0]), in[1]);
      loss.backward();
      return {loss};
    };
    add_module("net", net_);
    add_optimizer(optim::Adam(parameters(), {.lr = 1e-4}));
    config.enable_amp(true, {.dtype = DType::kF16});
  }

  void Step(int64_t batch) {
    ASSERT_TRUE(
        (*this)({Tensor::Full(DType::kF32, {batch, 8}, 0.5), Tensor::Zeros(DType::kI64, {batch})})
            .ok());
  }

 private:
  Sequential net_;
};

// Runs `step` for the numbers 0 .. count - 1 and expects that memory, after the first fifth, grows
// by less than a small share of what leaking one tensor or one executable a step would cost.
void ExpectFlat(int count, const std::function<void(int)>& step) {
  constexpr int64_t kAllowedKib = 2048;
  const int warm = count / 5;
  for (int i = 0; i < warm; ++i) step(i);
  const int64_t resident = ResidentKib();
  const int64_t live = BufferStats().live_bytes;
  for (int i = warm; i < count; ++i) step(i);
  const int64_t grown = ResidentKib() - resident;
  ::testing::Test::RecordProperty("grown_kib", std::to_string(grown));
  std::printf("resident %ld KiB after %d, grew by %ld KiB until %d\n", static_cast<long>(resident),
              warm, static_cast<long>(grown), count);
  EXPECT_LT(grown, kAllowedKib);
  EXPECT_LE(BufferStats().live_bytes, live + 65536);
}

TEST(Soak, TwentyThousandSteps) {
  if (testing::kAddressSanitizer || ResidentKib() == 0)
    GTEST_SKIP() << "AddressSanitizer, or no /proc";
  SoakModel model;
  ExpectFlat(20000, [&](int) { model.Step(16); });
  EXPECT_EQ(model.builds, 1);
}

TEST(Soak, AThousandCompilations) {
  if (testing::kAddressSanitizer || ResidentKib() == 0)
    GTEST_SKIP() << "AddressSanitizer, or no /proc";
  SoakModel model;
  // Longer than the cache, so that each call compiles anew.
  ExpectFlat(1000, [&](int i) { model.Step(1 + i % 50); });
  EXPECT_EQ(model.builds, 1000);
}

// Every call compiles for arrays a little larger than any before.
TEST(Soak, F64ShapesThatGrowByOne) {
  if (testing::kAddressSanitizer || ResidentKib() == 0)
    GTEST_SKIP() << "AddressSanitizer, or no /proc";
  FnGraph graph([](const Values& in) -> Values { return {exp(in[0] + 1.0) * in[0]}; });
  graph.eval();
  const auto call = [&](int64_t rows) {
    const auto out = graph({Tensor::Zeros(DType::kF32, {rows, 1024})});
    ASSERT_TRUE(out.ok()) << out.status();
  };
  int64_t rows = 256;
  for (; rows < 320; ++rows) call(rows);
  const int64_t resident = ResidentKib();
  for (; rows < 620; ++rows) call(rows);
  EXPECT_LT(ResidentKib() - resident, 64 * 1024) << "KiB after 300 calls with 1 to 2.5 MiB arrays";
}

}  // namespace
}  // namespace halftone::nn
