// A08, NVIDIA/apex#796: after loading a checkpoint, evaluation still used a 16-bit copy of the old
// weights.
#include "halftone/tests/cases/case_util.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::testing {
namespace {

const Tensor kOnes = Tensor::Of(DType::kF32, {2, 1}, {1, 1});
const Tensor kFirst = Tensor::Of(DType::kF32, {2, 2}, {1, 2, 3, 4});
const Tensor kOther = Tensor::Of(DType::kF32, {2, 2}, {2, 2, 2, 2});

// y = W x in 16 bit; a training step has gradient 1 for every element of W, whatever the scale.
class Product : public FnGraph {
 public:
  explicit Product(DType low)
      : FnGraph([](FnGraph& g, const nn::Values& in) -> nn::Values {
          const nn::Value y = nn::matmul(g.param("w"), in[0]);
          nn::sum(y).backward();
          return {y};
        }) {
    config.enable_amp(true, {.dtype = low});
    w = AddParam("w", kFirst);
    add_optimizer(optim::SGD(parameters(), {.lr = 1}));
    set_grad_scaler(amp::GradScaler({.init_scale = 1024}));  // 65536 would overflow in f16
  }
  nn::Parameter w;
};

class CaseA08 : public ::testing::TestWithParam<std::tuple<DType, Device>> {};

TEST_P(CaseA08, TheNextRunSeesEveryWriteToTheWeights) {
  const TempDir dir;
  Product graph(std::get<0>(GetParam()));
  graph.to(std::get<1>(GetParam()));
  ASSERT_TRUE(graph.save_checkpoint(dir.Path("first")).ok());
  graph.eval();
  const auto run = [&graph] { return Step(graph, {kOnes})[0]; };
  ExpectValues(run(), {3, 7});
  ASSERT_TRUE(graph.w.set_value(kOther).ok());
  ExpectValues(run(), {4, 4});
  EXPECT_NE(graph.compiled_text().find(Name(std::get<0>(GetParam()))), std::string::npos)
      << "the product is in 16 bit";

  ASSERT_TRUE(graph.load_checkpoint(dir.Path("first")).ok());
  ExpectValues(run(), {3, 7});

  // Through a host copy: seen when it is set, and not what is written to the copy later.
  Tensor host = graph.w.value();
  for (int64_t i = 0; i < host.num_elements(); ++i) host.data<float>()[i] = 2;
  ExpectValues(run(), {3, 7});
  ASSERT_TRUE(graph.w.set_value(host).ok());
  host.data<float>()[0] = 9;
  ExpectValues(run(), {4, 4});
  ASSERT_TRUE(graph.w.set_value(kFirst).ok());
  ExpectValues(run(), {3, 7});

  // By the optimizer, in an executable of its own.
  graph.train();
  ExpectValues(run(), {3, 7});
  ExpectValues(graph.w.value(), {0, 1, 2, 3});
  ExpectValues(run(), {1, 5});
  ASSERT_TRUE(graph.load_checkpoint(dir.Path("first")).ok());
  graph.eval();
  ExpectValues(run(), {3, 7});
}

INSTANTIATE_TEST_SUITE_P(Types, CaseA08,
                         ::testing::Combine(::testing::Values(DType::kF16, DType::kBF16),
                                            ::testing::ValuesIn(CaseDevices())));

}  // namespace
}  // namespace halftone::testing
