#include "halftone/tests/support/golden.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "halftone/graph/ir/verify.h"
#include "halftone/kernels/fixed_targets.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/passes/pipeline.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char kSeparator[] = "// expected\n";
constexpr const char kErrorSeparator[] = "// expected error ";
constexpr const char* kOptions[] = {"target", "cannot_run", "tolerance", "range", "ints", "print"};

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Lines "// key: value" before the graph, where the key is one word.
absl::StatusOr<std::map<std::string, std::string>> ReadOptions(const std::string& input) {
  std::map<std::string, std::string> options;
  std::istringstream lines(input);
  for (std::string line; std::getline(lines, line) && line.rfind("//", 0) == 0;) {
    std::istringstream words(line.substr(2));
    std::string key;
    words >> key;
    if (key.size() < 2 || key.back() != ':') continue;
    key.pop_back();
    const bool known = std::any_of(std::begin(kOptions), std::end(kOptions),
                                   [&](const char* option) { return key == option; });
    if (!known) return InvalidArgument("option \"", key, "\" is unknown");
    std::string value;
    std::getline(words >> std::ws, value);
    options[key] = value;
  }
  return options;
}

absl::StatusOr<std::pair<double, double>> ParseRange(const std::string& text) {
  const size_t dots = text.find("..");
  if (dots == std::string::npos) return InvalidArgument("\"", text, "\"; expected lo..hi");
  return std::make_pair(std::strtod(text.substr(0, dots).c_str(), nullptr),
                        std::strtod(text.substr(dots + 2).c_str(), nullptr));
}

void CheckResults(const GraphResults& before, const GraphResults& after, double tolerance) {
  const auto same = [&](const std::string& what, const Tensor& a, const Tensor& b) {
    if (tolerance == 0) {
      EXPECT_TRUE(BitEqual(a, b)) << what << ": " << a.TypeString() << " and " << b.TypeString()
                                  << " differ" << IsClose(b, a, 0, 0).message();
    } else {
      EXPECT_TRUE(IsClose(b, a, tolerance, tolerance)) << what;
    }
  };
  ASSERT_EQ(before.outputs.size(), after.outputs.size());
  for (size_t i = 0; i < before.outputs.size(); ++i) {
    same(Concat("output ", i), before.outputs[i], after.outputs[i]);
  }
  // A pass that lowers a marker commits more than there was.
  ASSERT_LE(before.commits.size(), after.commits.size());
  for (const auto& [name, value] : before.commits) {
    ASSERT_TRUE(after.commits.count(name) == 1) << "commit of " << name << " is gone";
    same("commit of " + name, value, after.commits.at(name));
  }
}

// State that a pass adds, a loss scale or a step count, starts from its initialiser.
void FeedNewVariables(const ir::Graph& after, GraphFeeds* feeds) {
  for (const ir::Variable& variable : after.variables()) {
    if (feeds->variables.count(variable.name) != 0) continue;
    feeds->variables[variable.name] =
        Tensor::Full(variable.type.dtype, variable.type.shape, variable.init.a);
  }
}

// The same feeds through the graph before and after.
void CheckExecution(const GoldenCase& golden, const ir::Graph& before, const ir::Graph& after) {
  if (HasMarkers(before) || HasMarkers(after)) return;
  const absl::StatusOr<FeedRange> range = FeedRangeOf(golden);
  ASSERT_TRUE(range.ok()) << range.status();
  const double tolerance = std::strtod(golden.option("tolerance", "0").c_str(), nullptr);
  const kernels::ReferenceEvaluator evaluator;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    GraphFeeds feeds = RandomFeeds(before, *range, seed);
    FeedNewVariables(after, &feeds);
    const auto expected = RunGraph(before, feeds, evaluator);
    ASSERT_TRUE(expected.ok()) << "before: " << expected.status();
    const auto got = RunGraph(after, feeds, evaluator);
    ASSERT_TRUE(got.ok()) << "after: " << got.status();
    CheckResults(*expected, *got, tolerance);
  }
}

void Rewrite(const GoldenCase& golden, const std::string& second_part) {
  std::ofstream(golden.path) << golden.input << second_part;
}

// "toy", with kernels for all ops but those of `cannot_run`.
kernels::DescribedTarget TargetWithout(const std::string& cannot_run) {
  std::istringstream words(cannot_run);
  return kernels::DescribedTarget(
      {.name = "toy",
       .kernel_dtypes = {DType::kF32, DType::kBF16, DType::kF16},
       .cannot_run = {std::istream_iterator<std::string>(words), {}},
       .traits = {.preferred_low = DType::kF32, .low_reason = "", .channels_last = true}});
}

bool Updating() { return std::getenv("UPDATE_GOLDEN") != nullptr; }

void CheckError(const GoldenCase& golden, const absl::Status& status) {
  const std::string got =
      std::string(absl::StatusCodeToString(status.code())) + ": " + Message(status);
  if (Updating()) return Rewrite(golden, kErrorSeparator + got + "\n");
  EXPECT_EQ(got, golden.expected_error);
}

}  // namespace

std::string GoldenCase::option(const std::string& key, const std::string& otherwise) const {
  const auto found = options.find(key);
  return found == options.end() ? otherwise : found->second;
}

absl::StatusOr<GoldenCase> ReadGolden(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  const std::string all = text.str();
  if (all.empty()) return NotFound(path, ": cannot be read, or is empty");
  GoldenCase golden;
  golden.path = path;
  golden.pass = fs::path(path).parent_path().filename().string();
  golden.name = fs::path(path).stem().string();
  golden.fires = !EndsWith(golden.name, "_does_not_fire");
  const size_t separator = all.find(kSeparator);
  const size_t error = all.find(kErrorSeparator);
  if (separator != std::string::npos) {
    golden.input = all.substr(0, separator);
    golden.expected = all.substr(separator + sizeof(kSeparator) - 1);
  } else if (error != std::string::npos) {
    golden.input = all.substr(0, error);
    golden.expected_error = all.substr(error + sizeof(kErrorSeparator) - 1);
    while (EndsWith(golden.expected_error, "\n")) golden.expected_error.pop_back();
  } else {
    golden.input = all;
    if (golden.fires && !Updating()) return InvalidArgument(path, ": has no line \"// expected\"");
  }
  auto options = ReadOptions(golden.input);
  if (!options.ok()) return Annotate(options.status(), path + ": ");
  golden.options = *std::move(options);
  return golden;
}

std::vector<std::string> GoldenFiles(const std::string& source_root) {
  std::vector<std::string> files;
  const fs::path root = fs::path(source_root) / "tests/passes/golden";
  if (!fs::exists(root)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

absl::StatusOr<FeedRange> FeedRangeOf(const GoldenCase& golden) {
  FeedRange range;
  HT_ASSIGN_OR_RETURN(const auto floats, ParseRange(golden.option("range", "-2..2")));
  HT_ASSIGN_OR_RETURN(const auto ints, ParseRange(golden.option("ints", "0..1")));
  range.lo = floats.first;
  range.hi = floats.second;
  range.ints_lo = static_cast<int64_t>(ints.first);
  range.ints_hi = static_cast<int64_t>(ints.second);
  return range;
}

ir::TextOptions TextOptionsOf(const GoldenCase& golden) {
  const std::string print = " " + golden.option("print", "") + " ";
  const auto wanted = [&](const std::string& word) {
    return print.find(" " + word + " ") != std::string::npos;
  };
  ir::TextOptions options;
  options.scopes = wanted("scopes");
  options.locations = wanted("locations");
  options.provenance = wanted("provenance");
  options.amp = wanted("amp");
  return options;
}

void CheckGolden(const GoldenCase& golden) {
  SCOPED_TRACE(golden.path);
  auto graph = ir::Parse(golden.input);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const std::unique_ptr<ir::Graph> before = (*graph)->Clone();
  const auto target = kernels::FindFixedTarget(golden.option("target", "cpu-avx512bf16"));
  ASSERT_TRUE(target.ok()) << target.status();
  const kernels::DescribedTarget lacking = TargetWithout(golden.option("cannot_run", ""));
  auto pass = passes::MakePass(golden.pass);
  ASSERT_TRUE(pass.ok()) << pass.status();
  EXPECT_EQ((*pass)->name(), golden.pass);

  const kernels::ReferenceEvaluator evaluator;
  passes::PassContext context;
  context.target = golden.options.contains("cannot_run") ? &lacking : *target;
  context.evaluator = &evaluator;
  const ir::TextOptions text = TextOptionsOf(golden);
  const absl::StatusOr<bool> changed = (*pass)->Run(**graph, context);
  if (!golden.expected_error.empty() || !changed.ok()) return CheckError(golden, changed.status());
  ASSERT_TRUE((*graph)->Sort().ok());
  const absl::Status valid = ir::Verify(**graph);
  ASSERT_TRUE(valid.ok()) << valid;
  EXPECT_EQ(*changed, golden.fires);
  const std::string got = ir::Print(**graph, text);
  if (!golden.fires) {
    EXPECT_EQ(got, ir::Print(*before, text));
  } else if (Updating()) {
    Rewrite(golden, kSeparator + got);
  } else {
    EXPECT_EQ(got, golden.expected);
  }
  EXPECT_EQ(*changed, (*graph)->Hash() != before->Hash()) << "the pass answered wrongly";
  CheckExecution(golden, *before, **graph);
}

}  // namespace halftone::testing
