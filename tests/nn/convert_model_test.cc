// amp::ConvertModel: f32 models for inference in 16 bit, their files, and the way back.
#include <cmath>
#include <filesystem>

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ir/text.h"
#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/temp_dir.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// Embedding, norm, two linear layers: what is stored in 16 bit, and what stays.
class PlainNet : public nn::FnGraph {
 public:
  PlainNet() : table_(11, 32), norm_({32}), fc1_(32, 64), fc2_(64, 32) {
    add_module("table", table_);
    add_module("norm", norm_);
    add_module("fc1", fc1_);
    add_module("fc2", fc2_);
    fn = [this](const nn::Values& in) -> nn::Values {
      return {fc2_(nn::relu(fc1_(norm_(table_(in[0])))))};
    };
  }
  ir::Model Model() {
    auto model = inference_model({kIds});
    EXPECT_TRUE(model.ok()) << model.status();
    return *std::move(model);
  }
  inline static const Tensor kIds = nn::I64({2, 3}, {0, 5, 10, 3, 3, 7});

 private:
  nn::Embedding table_;
  nn::LayerNorm norm_;
  nn::Linear fc1_, fc2_;
};

ir::Model Converted(const ir::Model& model, DType low, bool cast_parameters,
                    amp::Policy policy = {}) {
  policy.dtype = low;
  auto converted = amp::ConvertModel(model, policy, {.cast_parameters = cast_parameters});
  EXPECT_TRUE(converted.ok()) << converted.status();
  return converted.ok() ? *std::move(converted) : ir::Model();
}

// The only output of a run.
Tensor OutputOf(ir::Model model, const Tensor& in = PlainNet::kIds) {
  auto file = runtime::GraphFile::Create(std::move(model), Device::Cpu());
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok()) return Tensor::Zeros(DType::kF32, {1});
  auto out = (*file)->Run({{(*file)->inputs().at(0), in}});
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? out->begin()->second : Tensor::Zeros(DType::kF32, {1});
}

ir::Model ModelCopy(const ir::Model& model) {
  ir::Model copy;
  copy.graph = model.graph->Clone();
  copy.variables = model.variables;
  return copy;
}

int64_t BytesOfValues(const ir::Model& model) {
  int64_t bytes = 0;
  for (const auto& [name, value] : model.variables)
    bytes += static_cast<int64_t>(value.num_bytes());
  return bytes;
}

class ConvertModel : public ::testing::TestWithParam<DType> {
 protected:
  double Unit() const { return GetParam() == DType::kF16 ? 0x1p-11 : 0x1p-8; }
};

// y = W x + b with operands rounded to 16 bit and one rounding of the result: with unit roundoff u
// it errs by (2 u + u^2) |W| |x| + u |y| at most, and by f32's sums, which are far below.
TEST_P(ConvertModel, ErrsByTheRoundingsOf16Bit) {
  nn::Linear fc(48, 16);
  nn::FnGraph graph([&fc](const nn::Values& in) -> nn::Values { return {fc(in[0])}; });
  graph.add_module("fc", fc);
  const Tensor x = RandomTensor(DType::kF32, {4, 48}, 1);
  const ir::Model model = *graph.inference_model({x});
  const Tensor w = model.variables.at("fc.weight"), b = model.variables.at("fc.bias");
  const double u = Unit();
  for (const bool cast_parameters : {false, true}) {
    const Tensor y = OutputOf(Converted(model, GetParam(), cast_parameters), x);
    ASSERT_EQ(y.dtype(), DType::kF32);
    double largest = 0;
    for (int64_t row = 0; row < 4; ++row) {
      for (int64_t unit = 0; unit < 16; ++unit) {
        double want = b.at(unit), magnitude = std::abs(b.at(unit));
        for (int64_t k = 0; k < 48; ++k) {
          const double term = x.at(row * 48 + k) * w.at(unit * 48 + k);
          want += term;
          magnitude += std::abs(term);
        }
        const double error = std::abs(y.at(row * 16 + unit) - want);
        EXPECT_LE(error, (2 * u + u * u) * magnitude + u * std::abs(want) + 1e-6);
        largest = std::max(largest, error);
      }
    }
    EXPECT_GT(largest, u / 64) << "nothing was rounded";
  }
}

TEST_P(ConvertModel, StoresWhatSixteenBitNodesAloneRead) {
  PlainNet net;
  const ir::Model model = net.Model();
  const ir::Model converted = Converted(model, GetParam(), true);
  for (const char* name : {"fc1.weight", "fc2.weight"}) {
    EXPECT_EQ(converted.variables.at(name).dtype(), GetParam()) << name;
    EXPECT_EQ(converted.graph->FindVariable(name)->type.dtype, GetParam()) << name;
    EXPECT_TRUE(BitEqual(converted.variables.at(name), model.variables.at(name).To(GetParam())));
  }
  for (const char* name : {"table.weight", "norm.weight", "norm.bias"}) {
    EXPECT_TRUE(BitEqual(converted.variables.at(name), model.variables.at(name))) << name;
  }
  // The variables come in the order that they had.
  ASSERT_EQ(converted.graph->variables().size(), model.graph->variables().size());
  for (size_t i = 0; i < model.graph->variables().size(); ++i) {
    EXPECT_EQ(converted.graph->variables()[i].name, model.graph->variables()[i].name);
  }
  EXPECT_THAT(converted.notes, Contains(HasSubstr(" variables are stored in 16 bit")));
  // Only a conversion that was asked for does so.
  const ir::Model cast = Converted(model, GetParam(), false);
  for (const auto& [name, value] : cast.variables) EXPECT_EQ(value.dtype(), DType::kF32) << name;
  EXPECT_TRUE(BitEqual(OutputOf(ModelCopy(cast)), OutputOf(ModelCopy(converted))));
}

TEST_P(ConvertModel, HalvesMemoryAndFiles) {
  nn::Linear fc(512, 512, {.bias = false});
  nn::FnGraph graph([&fc](const nn::Values& in) -> nn::Values { return {fc(in[0])}; });
  graph.add_module("fc", fc);
  const ir::Model model = *graph.inference_model({Tensor::Zeros(DType::kF32, {1, 512})});
  const ir::Model converted = Converted(model, GetParam(), true);
  EXPECT_EQ(BytesOfValues(model), 512 * 512 * 4);
  EXPECT_EQ(BytesOfValues(converted), 512 * 512 * 2);
  const TempDir dir;
  for (const char* form : {"", ".onnx"}) {
    const std::string wide = dir.Path("wide") + form, low = dir.Path("low") + form;
    ASSERT_TRUE(nn::WriteModel(wide, model).ok());
    ASSERT_TRUE(nn::WriteModel(low, converted).ok());
    const auto size = [&](const std::string& path) {
      return static_cast<double>(
          std::filesystem::file_size(*form != '\0' ? path : path + "/variables.ckpt"));
    };
    EXPECT_NEAR(size(low) / size(wide), 0.5, 0.01) << form;
  }
}

TEST_P(ConvertModel, IsTheSameAfterAFile) {
  PlainNet net;
  const ir::Model converted = Converted(net.Model(), GetParam(), true);
  const Tensor want = OutputOf(ModelCopy(converted));
  const TempDir dir;
  for (const std::string& path : {dir.Path("folder"), dir.Path("model.onnx")}) {
    ASSERT_TRUE(nn::WriteModel(path, converted).ok()) << path;
    auto read = nn::ReadModel(path);
    ASSERT_TRUE(read.ok()) << read.status();
    for (const char* name : {"fc1.weight", "norm.weight"}) {
      EXPECT_TRUE(BitEqual(read->variables.at(name), converted.variables.at(name))) << name;
    }
    // The folder holds the graph itself, ONNX what its operators make of it.
    const Tensor got = OutputOf(*std::move(read));
    if (path.ends_with(".onnx")) {
      EXPECT_LE(MaxRelError(got, want), 8 * Unit());
    } else {
      EXPECT_TRUE(BitEqual(got, want));
    }
  }
}

TEST_P(ConvertModel, RemovesItsCastsAgain) {
  PlainNet net;
  const ir::Model model = net.Model();
  const Tensor want = OutputOf(ModelCopy(model));
  const ir::Model converted = Converted(model, GetParam(), false);
  EXPECT_THAT(converted.graph->ToString(), HasSubstr(" = cast("));
  auto plain = amp::RemoveAmpCasts(converted);
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_THAT(plain->graph->ToString(), Not(HasSubstr(" = cast(")));
  EXPECT_THAT(plain->graph->ToString(), Not(HasSubstr(Name(GetParam()))));
  EXPECT_TRUE(BitEqual(OutputOf(*std::move(plain)), want));
  // Stored parameters become f32 again, and stay rounded.
  auto rounded = amp::RemoveAmpCasts(Converted(model, GetParam(), true));
  ASSERT_TRUE(rounded.ok()) << rounded.status();
  EXPECT_THAT(rounded->graph->ToString(), Not(HasSubstr(Name(GetParam()))));
  EXPECT_TRUE(BitEqual(rounded->variables.at("fc1.weight"),
                       model.variables.at("fc1.weight").To(GetParam()).To(DType::kF32)));
  // And it can be converted anew, to the same.
  const ir::Model again = Converted(*rounded, GetParam(), true);
  EXPECT_TRUE(BitEqual(OutputOf(ModelCopy(again)), OutputOf(Converted(model, GetParam(), true))));
}

INSTANTIATE_TEST_SUITE_P(Types, ConvertModel, ::testing::Values(DType::kF16, DType::kBF16),
                         [](const auto& info) { return std::string(Name(info.param)); });

TEST(ConvertModelPolicy, KeepsExcludedNamesAndOperatorsF32) {
  PlainNet net;
  const ir::Model model = net.Model();
  const ir::Model converted =
      Converted(model, DType::kF16, true, *amp::Policy::FromLists({.excluded_names = {"fc2/*"}}));
  EXPECT_EQ(converted.variables.at("fc1.weight").dtype(), DType::kF16);
  EXPECT_EQ(converted.variables.at("fc2.weight").dtype(), DType::kF32);
  const ir::Model none = Converted(model, DType::kF16, true, {.deny = {"linear"}});
  EXPECT_EQ(BytesOfValues(none), BytesOfValues(model));
}

TEST(ConvertModelPolicy, OutputsKeepTheirDTypeUnlessAsked) {
  PlainNet net;
  const ir::Model model = net.Model();
  EXPECT_EQ(OutputOf(Converted(model, DType::kF16, false)).dtype(), DType::kF32);
  EXPECT_EQ(OutputOf(Converted(model, DType::kF16, false, {.low_outputs = true})).dtype(),
            DType::kF16);
}

// A policy of the configuration stands in the traced graph; that of the conversion takes its place.
TEST(ConvertModelPolicy, TakesThePlaceOfTheConfigurations) {
  PlainNet net;
  net.config.enable_amp(true, {.dtype = DType::kBF16, .deny = {"fc1/*"}});
  const ir::Model converted = Converted(net.Model(), DType::kF16, true);
  EXPECT_EQ(converted.variables.at("fc1.weight").dtype(), DType::kF16);
}

std::string ConversionError(const ir::Model& model, const amp::Policy& policy,
                            const amp::ConvertOptions& options = {}) {
  const auto converted = amp::ConvertModel(model, policy, options);
  EXPECT_FALSE(converted.ok());
  return converted.ok() ? "" : Message(converted.status());
}

TEST(ConvertModelErrors, NameWhatDoesNotFit) {
  PlainNet net;
  const ir::Model model = net.Model();
  const amp::Policy f16{.dtype = DType::kF16};

  ir::Model changed = ModelCopy(model);
  changed.variables.erase("fc1.weight");
  EXPECT_EQ(ConversionError(changed, f16),
            "convert_model: variable \"fc1.weight\" has no value; expected one");
  changed.variables["fc1.weight"] = Tensor::Zeros(DType::kF32, {64, 31});
  EXPECT_EQ(ConversionError(changed, f16),
            "convert_model: variable \"fc1.weight\" has the value f32[64,31]; expected f32[64,32]");
  changed = ModelCopy(model);
  changed.variables["fc3.weight"] = Tensor::Zeros(DType::kF32, {1});
  EXPECT_EQ(ConversionError(changed, f16),
            "convert_model: value \"fc3.weight\": graph @graph has no such variable");

  EXPECT_EQ(ConversionError(model, {.dtype = DType::kF32}),
            "convert_model: dtype is f32; expected f16 or bf16");
  EXPECT_THAT(ConversionError(model, {}, {.device = Device::Reference()}),
              HasSubstr("convert_model: no dtype is given, and reference prefers f32: "));
  EXPECT_THAT(ConversionError(model, {.dtype = DType::kF16, .deny = {"head/*"}}),
              HasSubstr("convert_model: amp policy: deny \"head/*\" matches no node"));
  EXPECT_EQ(ConversionError(Converted(model, DType::kF16, false), f16),
            "convert_model: graph @graph is converted already; expected it as traced, or as "
            "RemoveAmpCasts leaves it");
}

TEST(ConvertModelErrors, AValueOutOfRangeNamesTheNodesToDeny) {
  PlainNet net;
  ir::Model model = net.Model();
  Tensor w = model.variables.at("fc1.weight").Clone();
  w.set(3, -65520);  // the first that rounds to infinity
  model.variables["fc1.weight"] = w;
  EXPECT_EQ(ConversionError(model, {.dtype = DType::kF16}),
            "convert_model: variable \"fc1.weight\": -65520 leaves the range of f16; expected "
            "another dtype, or a policy that denies fc1/linear");
  Converted(model, DType::kBF16, true);
  Converted(model, DType::kF16, true, {.deny = {"fc1/linear"}});
  w.set(3, -65519);  // rounds to -65504
  EXPECT_EQ(Converted(model, DType::kF16, true).variables.at("fc1.weight").at(3), -65504);
}

TEST(ConvertModelErrors, ATrainingStepIsNotForInference) {
  const char* const text =
      "graph @step(%x: f32[2,2]) {\n"
      "  %w = variable \"w\" {init=\"constant(1)\"} : f32[2,2]\n"
      "  %y = matmul(%x, %w)\n"
      "  commit \"w\" = %y\n"
      "  return %y\n"
      "}\n";
  ir::Model model;
  model.graph = *ir::Parse(text);
  model.variables["w"] = Tensor::Zeros(DType::kF32, {2, 2});
  EXPECT_THAT(ConversionError(model, {.dtype = DType::kF16}),
              HasSubstr("graph @step is a training step; expected one for inference"));
}

TEST(ModelFiles, RefuseWhatIsNone) {
  const TempDir dir;
  EXPECT_TRUE(absl::IsNotFound(nn::ReadModel(dir.Path("absent")).status()));
  PlainNet net;
  const ir::Model model = net.Model();
  ASSERT_TRUE(nn::WriteModel(dir.Path("model"), model).ok());
  // Values of another graph: half of a model that was written over.
  ir::Model other = ModelCopy(model);
  other.variables.at("fc1.weight") = Tensor::Zeros(DType::kF32, {1});
  EXPECT_THAT(Message(nn::WriteModel(dir.Path("other"), other)),
              HasSubstr("variable \"fc1.weight\" has the value f32[1]"));
  EXPECT_FALSE(std::filesystem::exists(dir.Path("other")));
  std::filesystem::create_directories(dir.Path("dump"));
  dir.Write("dump/01_simplify.txt", "");
  EXPECT_THAT(Message(nn::WriteModel(dir.Path("dump"), model)),
              HasSubstr("holds the dump of a program; expected another folder"));
}

}  // namespace
}  // namespace halftone::testing
