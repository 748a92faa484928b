// Pooling where the case tables do not go: packs of channels, f64, special values.
#include <gtest/gtest.h>

#include <limits>

#include "halftone/graph/ops/support/window.h"
#include "halftone/tests/cuda/run_on_device.h"
#include "halftone/tests/support/op_cases.h"
#include "halftone/tests/support/run_kernel.h"
#include "halftone/tests/support/tolerances.h"

namespace halftone::testing {
namespace {

using Ints = std::vector<int64_t>;

constexpr DType kFloats[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16};
constexpr ir::Layout kLayouts[] = {ir::Layout::kPlain, ir::Layout::kChannelsLast};

void CheckEverywhere(const OpCase& c) {
  for (DType dtype : kFloats) {
    for (ir::Layout layout : kLayouts) {
      const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype, layout);
      const ir::Node& node = *CaseNode(*graph);
      const std::vector<Tensor> inputs = MakeCaseInputs(c, dtype);
      const auto kernel =
          kernels::KernelRegistry::Global().CreateNamed(node, CudaCandidates(c.op).back()->name);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      const auto got = RunOnDevice(**kernel, node, inputs);
      const auto want = RunReference(node, inputs);
      ASSERT_TRUE(got.ok() && want.ok()) << got.status();
      for (size_t i = 0; i < want->size(); ++i) {
        EXPECT_TRUE(AgreesWithReference(c.op, (*got)[i], (*want)[i]))
            << c.name << " in " << Name(dtype) << ", output " << i;
      }
    }
  }
}

ir::Attributes Window(int64_t kernel, int64_t stride, int64_t padding, bool ceil_mode) {
  return {{"kernel", Ints{kernel, kernel}},
          {"stride", Ints{stride, stride}},
          {"padding", Ints{padding, padding}},
          {"ceil_mode", ceil_mode}};
}

// Offsets within the windows of all outputs, some in the padding: such a one adds nowhere.
OpInput Offsets(const Shape& y, int64_t kernel) {
  return Whole(DType::kU8, y, 0, static_cast<double>(kernel * kernel - 1));
}

TEST(CudaPoolTest, PacksOfChannelsAndEveryFloat) {
  for (int64_t channels : {16, 8, 24, 7}) {
    for (bool ceil_mode : {false, true}) {
      const Shape x = {2, channels, 7, 10};
      const ir::Attributes window = Window(3, 2, 1, ceil_mode);
      const Shape y = ops::PoolGeometryOf(window, x).y_shape();
      ir::Attributes grad = window;
      grad.Set("shape", Ints(x.dims().begin(), x.dims().end()));
      const std::string variant = Concat(channels, ceil_mode ? "_channels_ceil" : "_channels");
      CheckEverywhere(Case("max_pool2d", variant, {Reals(x)}, window));
      CheckEverywhere(Case("avg_pool2d", variant, {Reals(x)}, window));
      CheckEverywhere(Case("max_pool2d_grad", variant, {Reals(y), Offsets(y, 3)}, grad));
      CheckEverywhere(Case("avg_pool2d_grad", variant, {Reals(y)}, grad));
    }
  }
}

TEST(CudaPoolTest, SpecialValues) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const double cycle[] = {-inf, -inf, 1, nan, -0.0, 0.0, inf, -1, -inf, -inf, nan};
  const Shape x = {1, 8, 9, 5};
  std::vector<double> values;
  for (int64_t i = 0; i < x.num_elements(); ++i) values.push_back(cycle[i * i % 11]);
  CheckEverywhere(Case("max_pool2d", "special", {Fixed(x, values)}, Window(2, 1, 0, false)));
  CheckEverywhere(Case("max_pool2d", "nothing_but_minus_inf",
                       {Fixed(x, std::vector<double>(values.size(), -inf))},
                       Window(3, 3, 1, false)));
}

}  // namespace
}  // namespace halftone::testing
