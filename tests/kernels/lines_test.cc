// Softmax and cross-entropy along any axis: values, digits at any offset, and time.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cmath>

#include "halftone/core/threads.h"
#include "halftone/tests/kernels/cpu_check.h"
#include "halftone/tests/kernels/each_kernel.h"

namespace halftone::testing {
namespace {

OpInput Labels(const Shape& shape, const std::vector<double>& values) {
  OpInput labels = Pinned(Fixed(shape, values));
  labels.type.dtype = DType::kI64;
  return labels;
}

// Tiles that are full, cut, and made of several pieces; long lines, whose tiles are narrow.
TEST(Lines, EveryKernelAgreesWithTheReference) {
  for (const Shape& x : {Shape{3, 5, 2}, Shape{7, 40, 3}, Shape{2, 33, 64}, Shape{3, 65, 65},
                         Shape{5, 1, 31}, Shape{1, 2500, 35}, Shape{2, 5000, 19}}) {
    const ir::Attributes axis = {{"axis", int64_t{1}}};
    for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (const char* op : {"softmax", "log_softmax"}) {
        CheckCandidates(Case(op, "lines", {Reals(x, -5, 5)}, axis), dtype);
        CheckCandidates(
            Case(std::string(op) + "_grad", "lines",
                 {Reals(x, op[0] == 's' ? 0 : -2, op[0] == 's' ? 0.1 : 0), Reals(x)}, axis),
            dtype);
      }
      const Shape target{x[0], x[2]}, stats{2, x[0], x[2]};
      const OpInput labels = Whole(DType::kI64, target, 0, static_cast<double>(x[1] - 1));
      for (double smoothing : {0.0, 0.2}) {
        const ir::Attributes attrs = {
            {"axis", int64_t{1}}, {"label_smoothing", smoothing}, {"ignore_index", int64_t{0}}};
        CheckCandidates(Case("cross_entropy", "lines", {Reals(x, -5, 5), labels}, attrs), dtype);
        CheckCandidates(
            Case("cross_entropy_grad", "lines",
                 {Reals(x, -5, 5), labels, Pinned(Reals(stats, 2, 4)), Pinned(Reals({}, 0.5, 2))},
                 attrs),
            dtype);
      }
    }
  }
}

// An ignored line has gradient 0, whatever its logits.
TEST(Lines, IgnoredLinesTakeNothing) {
  const double inf = INFINITY, nan = std::nan("");
  ForEachKernel(
      Case("cross_entropy_grad", "ignored",
           {Fixed({1, 2, 2}, {inf, 1, nan, 1}), Labels({1, 2}, {-100, 0}),
            Pinned(Fixed({2, 1, 2}, {nan, 1, nan, std::log(2.0)})), Pinned(Fixed({}, {1}))},
           {{"axis", int64_t{1}}}),
      DType::kF32, [](const std::vector<Tensor>& out, const std::string& what) {
        EXPECT_EQ(out[0].at(0), 0) << what;
        EXPECT_EQ(out[0].at(2), 0) << what;
        EXPECT_NEAR(out[0].at(1), -0.5, 1e-6) << what;
        EXPECT_NEAR(out[0].at(3), 0.5, 1e-6) << what;
      });
}

// softmax(0, 1, 2.5) = (1, e, e^2.5) / 15.90077...; less 1 at the target.
TEST(Lines, F51_CrossEntropyGradientAtAnyOffset) {
  const double e1 = std::exp(1.0), e2 = std::exp(2.5), sum = 1 + e1 + e2;
  const double want[] = {1 / sum, e1 / sum - 1, e2 / sum};
  EXPECT_NEAR(want[0], 0.06289, 5e-6);
  EXPECT_NEAR(want[1], -0.82905, 5e-6);
  EXPECT_NEAR(want[2], 0.76616, 5e-6);
  for (double offset : {0.0, 1e4, -1e4, 1e6, -3e6}) {
    for (bool last : {true, false}) {
      // Two lines: one after the other, or element by element in turn.
      const std::vector<double> x = {offset, offset + 1, offset + 2.5};
      std::vector<double> logits;
      for (int i = 0; i < 6; ++i) logits.push_back(last ? x[i % 3] : x[i / 2]);
      const OpInput in = Fixed(last ? Shape{2, 3} : Shape{1, 3, 2}, logits);
      const OpInput target = Labels(last ? Shape{2} : Shape{1, 2}, {1, 1});
      const ir::Attributes attrs = {{"axis", int64_t{1}}, {"reduction", std::string("sum")}};
      ForEachKernel(Case("cross_entropy", "offset", {in, target}, attrs), DType::kF32,
                    [&](const std::vector<Tensor>& out, const std::string& what) {
                      EXPECT_NEAR(out[0].at(0), 2 * (std::log(sum) - 1), 1e-6) << what;
                      OpInput stats = Pinned(Fixed(out[1].shape(), out[1].ToVector()));
                      ForEachKernel(Case("cross_entropy_grad", "offset",
                                         {in, target, stats, Pinned(Fixed({}, {1}))}, attrs),
                                    DType::kF32,
                                    [&](const std::vector<Tensor>& dx, const std::string& by) {
                                      for (int i = 0; i < 6; ++i) {
                                        EXPECT_NEAR(dx[0].at(i), want[last ? i % 3 : i / 2], 1e-6)
                                            << what << "; " << by;
                                      }
                                    });
                    });
    }
  }
}

// Label smoothing adds (m - mean) and must not lose it either: uniform loss is log sum - mean.
TEST(Lines, F51_SmoothedLossAtAnyOffset) {
  const double sum = 1 + std::exp(1.0) + std::exp(2.5), mean = 3.5 / 3;
  for (double offset : {0.0, 1e4, 1e6}) {
    const OpInput target = Labels({1}, {1});
    ForEachKernel(
        Case("cross_entropy", "smooth", {Fixed({1, 3}, {offset, offset + 1, offset + 2.5}), target},
             {{"axis", int64_t{1}}, {"label_smoothing", 0.5}}),
        DType::kF32, [&](const std::vector<Tensor>& out, const std::string& what) {
          const double log = std::log(sum);
          EXPECT_NEAR(out[0].at(0), 0.5 * (log - 1) + 0.5 * (log - mean), 1e-6) << what;
        });
  }
}

// Statistics over no elements are 0 / 0 on every device, as the op `mean` has them.
TEST(Lines, F67_LayerNormOfNoElements) {
  ForEachKernel(Case("layer_norm", "empty", {Reals({3, 0}), Pinned(Reals({0})), Pinned(Reals({0}))},
                     {{"axes_count", int64_t{1}}}),
                DType::kF32, [](const std::vector<Tensor>& out, const std::string& what) {
                  ASSERT_EQ(out[1].num_elements(), 3) << what;
                  for (int i = 0; i < 3; ++i) {
                    EXPECT_TRUE(std::isnan(out[1].at(i))) << what << ": " << out[1].at(i);
                    EXPECT_TRUE(std::isnan(out[2].at(i))) << what << ": " << out[2].at(i);
                  }
                });
}

// The kernel that the registry chooses, its inputs, and the best of the runs so far.
struct Timed {
  explicit Timed(const OpCase& c)
      : inputs(MakeCaseInputs(c, DType::kF32)), graph(BuildCaseGraph(c, DType::kF32)) {
    const ir::Node& node = *CaseNode(*graph);
    kernel = *kernels::KernelRegistry::Global().Select(node, Device::Kind::kCpu);
    for (const Tensor& t : inputs) in.push_back(t.raw());
    for (int i = 0; i < node.num_outputs(); ++i) {
      outputs.push_back(Tensor::Empty(node.output_type(i).dtype, node.output_type(i).shape));
      out.push_back(outputs.back().raw());
    }
    workspace = Tensor::Empty(
        DType::kU8, {static_cast<int64_t>(std::max<size_t>(64, kernel->workspace_bytes()))});
  }
  void Run() {
    kernels::RunState state;
    const double start = CpuSeconds();
    kernel->Run({in.data(), out.data(), workspace.raw(), &state});
    best = std::min(best, CpuSeconds() - start);
  }
  // Of this thread, so that other processes do not count.
  static double CpuSeconds() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }
  std::vector<Tensor> inputs, outputs;
  Tensor workspace;
  std::unique_ptr<ir::Graph> graph;
  std::unique_ptr<kernels::Kernel> kernel;
  std::vector<const void*> in;
  std::vector<void*> out;
  double best = 1e9;
};

// Along another axis than the last about as long: benchmarks/kernels measures how long. Here, where
// other processes use the caches too, only that one element at a time (5.1 times as long) is over.
TEST(Lines, F09_AnotherAxisTakesAboutAsLong) {
  const auto cross_entropy = [](const Shape& x, const Shape& target, int64_t axis) {
    return Case("cross_entropy", "time", {Reals(x, -5, 5), Whole(DType::kI64, target, 0, 80)},
                {{"axis", axis}});
  };
  const auto gradient = [](const Shape& x, const Shape& target, const Shape& stats, int64_t axis) {
    return Case("cross_entropy_grad", "time",
                {Reals(x, -5, 5), Whole(DType::kI64, target, 0, 80), Pinned(Reals(stats, 2, 4)),
                 Pinned(Reals({}))},
                {{"axis", axis}});
  };
  const auto softmax = [](const char* op, const Shape& x, int64_t axis) {
    return Case(op, "time", {Reals(x, -5, 5)}, {{"axis", axis}});
  };
  const std::pair<OpCase, OpCase> pairs[] = {
      {cross_entropy({2, 81, 4000}, {2, 4000}, 1), cross_entropy({2, 4000, 81}, {2, 4000}, 2)},
      {gradient({2, 81, 4000}, {2, 4000}, {2, 2, 4000}, 1),
       gradient({2, 4000, 81}, {2, 4000}, {2, 2, 4000}, 2)},
      {softmax("softmax", {1, 3072, 512}, 1), softmax("softmax", {1, 512, 3072}, 2)},
      {softmax("log_softmax", {1, 3072, 512}, 1), softmax("log_softmax", {1, 512, 3072}, 2)},
  };
  const int before = NumThreads();
  SetNumThreads(1);
  EXPECT_TRUE(UseNumThreads().ok());
  for (const auto& [middle, last] : pairs) {
    Timed a(middle), b(last);
    for (int round = 0; round < 30 && (round < 6 || a.best > 4 * b.best); ++round) {
      a.Run();
      b.Run();
    }
    EXPECT_LE(a.best, 4 * b.best) << middle.name << ": " << a.kernel->name();
  }
  SetNumThreads(before);
  EXPECT_TRUE(UseNumThreads().ok());
}

}  // namespace
}  // namespace halftone::testing
