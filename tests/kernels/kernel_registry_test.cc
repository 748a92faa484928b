// The registry with candidates made for the test: order, refusals, names.

#include <gtest/gtest.h>

#include "halftone/graph/ir/builder.h"
#include "halftone/kernels/kernel.h"

namespace halftone::kernels {
namespace {

class NoKernel : public Kernel {
 public:
  void Run(const KernelArgs&) override {}
};

KernelCandidate Candidate(const std::string& name, Device::Kind device, KernelTier tier,
                          absl::Status support = absl::OkStatus()) {
  KernelCandidate c;
  c.name = name;
  c.op = "add";
  c.device = device;
  c.tier = tier;
  c.dtypes = {DType::kF32};
  c.supports = [support](const ir::Node&) { return support; };
  c.create = [](const ir::Node&) {
    return absl::StatusOr<std::unique_ptr<Kernel>>(std::make_unique<NoKernel>());
  };
  return c;
}

class KernelRegistryTest : public ::testing::Test {
 protected:
  // add(x, x) of f32[2] or another dtype.
  const ir::Node& Add(DType dtype = DType::kF32) {
    ir::Builder b(&graph_);
    const ir::Expr x = b.Input("x", {dtype, Shape{2}});
    return *b.Op("add", {x, x}).value().node;
  }
  KernelRegistry registry_;

 private:
  ir::Graph graph_;
};

// Of the CPU's own kernels too, whatever the files are called that register them.
TEST(GlobalKernelRegistry, OrdersByTier) {
  const auto names = [](const std::string& op) {
    std::string text;
    for (const auto* c : KernelRegistry::Global().Candidates(op, Device::Kind::kCpu)) {
      text += c->name + " ";
    }
    return text;
  };
  EXPECT_EQ(names("add"), "cpu:simd:add cpu:scalar:add reference:add ");
  EXPECT_EQ(names("less"), "cpu:simd:less cpu:scalar:less reference:less ");
  EXPECT_EQ(names("matmul"),
            "cpu:onednn:matmul cpu:simd:matmul cpu:widened:matmul reference:matmul ");
}

TEST_F(KernelRegistryTest, OrdersByTierThenRegistration) {
  registry_.Add(Candidate("ref", Device::Kind::kReference, KernelTier::kReference));
  registry_.Add(Candidate("fallback", Device::Kind::kCpu, KernelTier::kFallback));
  registry_.Add(Candidate("native_1", Device::Kind::kCpu, KernelTier::kNative));
  registry_.Add(Candidate("library", Device::Kind::kCpu, KernelTier::kLibrary));
  registry_.Add(Candidate("native_2", Device::Kind::kCpu, KernelTier::kNative));
  registry_.Add(Candidate("cuda", Device::Kind::kCuda, KernelTier::kNative));
  const auto names = [&](Device::Kind device) {
    std::string text;
    for (const auto* c : registry_.Candidates("add", device)) text += c->name + " ";
    return text;
  };
  EXPECT_EQ(names(Device::Kind::kCpu), "library native_1 native_2 fallback ref ");
  EXPECT_EQ(names(Device::Kind::kReference), "ref ");
  EXPECT_EQ(names(Device::Kind::kCuda), "cuda ");
  EXPECT_TRUE(registry_.Candidates("mul", Device::Kind::kCpu).empty());
  EXPECT_EQ(registry_.All().size(), 6u);
}

TEST_F(KernelRegistryTest, TakesTheFirstThatSupportsAndCreates) {
  registry_.Add(Candidate("library", Device::Kind::kCpu, KernelTier::kLibrary,
                          Unimplemented("needs channels-last")));
  KernelCandidate broken = Candidate("native_1", Device::Kind::kCpu, KernelTier::kNative);
  broken.create = [](const ir::Node&) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    return Unimplemented("library gives only ref:any");
  };
  registry_.Add(std::move(broken));
  registry_.Add(Candidate("native_2", Device::Kind::kCpu, KernelTier::kNative));
  std::string log;
  const auto kernel = registry_.Select(Add(), Device::Kind::kCpu, &log);
  ASSERT_TRUE(kernel.ok());
  EXPECT_EQ((*kernel)->name(), "native_2");
  EXPECT_EQ(log, "  library: needs channels-last\n  native_1: library gives only ref:any\n");
}

// Memory that is short now says nothing about the kernel: no slower one may take its place for
// good.
TEST_F(KernelRegistryTest, OutOfMemoryIsNoRefusal) {
  KernelCandidate unlucky = Candidate("library", Device::Kind::kCpu, KernelTier::kLibrary);
  unlucky.create = [](const ir::Node&) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    return ResourceExhausted("no room for a plan");
  };
  registry_.Add(std::move(unlucky));
  registry_.Add(Candidate("native", Device::Kind::kCpu, KernelTier::kNative));
  const auto kernel = registry_.Select(Add(), Device::Kind::kCpu);
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(kernel.status()), "library: no room for a plan");
}

TEST_F(KernelRegistryTest, ListsEveryRefusal) {
  registry_.Add(Candidate("library", Device::Kind::kCpu, KernelTier::kLibrary,
                          Unimplemented("needs channels-last")));
  registry_.Add(
      Candidate("ref", Device::Kind::kReference, KernelTier::kReference, Unimplemented("planted")));
  const auto f32 = registry_.Select(Add(), Device::Kind::kCpu);
  EXPECT_EQ(f32.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Message(f32.status()),
            "add(%add) of (f32[2], f32[2]): every kernel refuses:\n"
            "  library: needs channels-last\n"
            "  ref: planted");
  const auto f16 = registry_.Select(Add(DType::kF16), Device::Kind::kReference);
  EXPECT_EQ(Message(f16.status()),
            "add(%add_1) of (f16[2], f16[2]): every kernel refuses:\n  ref: no f16; has f32");
  EXPECT_EQ(Message(registry_.Select(Add(), Device::Kind::kCuda).status()),
            "add(%add_2) of (f32[2], f32[2]): no kernel is registered");
}

TEST_F(KernelRegistryTest, CreatesByName) {
  registry_.Add(Candidate("native", Device::Kind::kCpu, KernelTier::kNative));
  const auto kernel = registry_.CreateNamed(Add(), "native");
  ASSERT_TRUE(kernel.ok());
  EXPECT_EQ((*kernel)->name(), "native");
  const auto missing = registry_.CreateNamed(Add(), "cpu:simd:other");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Message(missing.status()), "no kernel \"cpu:simd:other\" for op add");
}

// The dtype asked about is that of the first float operand: a condition or an index is not it.
TEST(KernelRegistryDType, IsThatOfTheFirstFloat) {
  KernelRegistry registry;
  KernelCandidate c = Candidate("native", Device::Kind::kCpu, KernelTier::kNative);
  c.op = "where";
  registry.Add(std::move(c));
  ir::Graph graph;
  ir::Builder b(&graph);
  const ir::Expr condition = b.Input("c", {DType::kBool, Shape{2}});
  const ir::Expr x = b.Input("x", {DType::kF32, Shape{2}});
  const ir::Expr y = b.Op("where", {condition, x, x});
  EXPECT_TRUE(registry.Select(*y.value().node, Device::Kind::kCpu).ok());
}

}  // namespace
}  // namespace halftone::kernels
