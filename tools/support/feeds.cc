#include "halftone/tools/support/feeds.h"

#include <filesystem>
#include <set>

#include "halftone/cli/exit_status.h"
#include "halftone/core/io/npy.h"
#include "halftone/core/philox.h"
#include "halftone/graph/ir/number_text.h"

namespace halftone::tools {
namespace {

constexpr char kSources[] = "FILE.npy, zeros, ones, arange, arange:N or normal:SEED";

bool IsFile(const std::string& source) { return source.size() > 4 && source.ends_with(".npy"); }

// "arange:10" as {"arange", 10}. The number is -1 where there is none.
struct Generator {
  std::string word;
  int64_t number = -1;
};

absl::StatusOr<Generator> ParseGenerator(const std::string& text) {
  const size_t colon = text.find(':');
  Generator generator{text.substr(0, colon)};
  const bool numbered = colon != std::string::npos;
  if (numbered) {
    const auto number = ir::ParseInt(text.substr(colon + 1));
    if (!number.ok() || *number < 0) return cli::WrongOption("expected ", kSources);
    generator.number = *number;
  }
  const std::string& word = generator.word;
  const bool known = numbered ? word == "normal" || (word == "arange" && generator.number > 0)
                              : word == "zeros" || word == "ones" || word == "arange";
  if (!known) return cli::WrongOption("expected ", kSources);
  return generator;
}

absl::StatusOr<Tensor> Generate(const Generator& generator, const ir::ValueType& type) {
  HT_ASSIGN_OR_RETURN(Tensor value, Tensor::Allocate(type.dtype, type.shape));
  if (generator.word == "normal") {
    if (!IsFloat(type.dtype)) {
      return cli::WrongOption("normal has no values for ", type, "; expected a float input");
    }
    PhiloxStream random(static_cast<uint64_t>(generator.number));
    for (int64_t i = 0; i < value.num_elements(); ++i) {
      value.set(i, static_cast<double>(random.Normal()));
    }
    return value;
  }
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    const int64_t x = generator.word == "zeros"  ? 0
                      : generator.word == "ones" ? 1
                      : generator.number > 0     ? i % generator.number
                                                 : i;
    StoreInt(value.raw(), type.dtype, i, x);
  }
  return value;
}

}  // namespace

absl::StatusOr<Feeds> Feeds::Parse(const std::vector<std::string>& items) {
  Feeds feeds;
  for (const std::string& item : items) {
    const size_t equals = item.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return cli::WrongOption("--feed ", item, ": expected INPUT=", kSources);
    }
    const std::string input = item.substr(0, equals), source = item.substr(equals + 1);
    if (!IsFile(source)) {
      HT_RETURN_IF_ERROR(Annotate(ParseGenerator(source).status(), "--feed " + item + ": "));
    }
    if (!feeds.sources_.emplace(input, Source{source, {}}).second) {
      return cli::WrongOption("--feed ", input, ": given twice");
    }
  }
  return feeds;
}

std::map<std::string, Feeds::Source>::const_iterator Feeds::Find(const ir::Node& input) const {
  const auto by_name = sources_.find(input.attrs().GetString("name"));
  return by_name != sources_.end() ? by_name : sources_.find(input.name());
}

void Feeds::AddFrom(const std::string& folder, const ir::Graph& graph) {
  for (const ir::Node* node : graph.inputs()) {
    const std::string& name = node->attrs().GetString("name");
    const std::string path = Concat(folder, "/", name, ".npy");
    std::error_code ignored;
    if (Find(*node) == sources_.end() && std::filesystem::exists(path, ignored)) {
      sources_.emplace(name, Source{path, {}});
    }
  }
}

absl::Status Feeds::ReadFiles() {
  for (auto& [input, source] : sources_) {
    if (!IsFile(source.text)) continue;
    HT_ASSIGN_OR_RETURN(source.value, io::ReadNpy(source.text));
  }
  return absl::OkStatus();
}

std::map<std::string, Tensor> Feeds::FileValues() const {
  std::map<std::string, Tensor> values;
  for (const auto& [input, source] : sources_) {
    if (IsFile(source.text)) values.emplace(input, source.value);
  }
  return values;
}

absl::StatusOr<std::vector<Tensor>> Feeds::MakeTensors(const ir::Graph& graph) const {
  std::vector<Tensor> tensors;
  std::set<std::string> used;
  std::string inputs;
  for (const ir::Node* node : graph.inputs()) {
    const std::string& name = node->attrs().GetString("name");
    const ir::ValueType& type = node->output_type();
    inputs += Concat(inputs.empty() ? "" : ", ", name);
    const auto source = Find(*node);
    if (source == sources_.end()) {
      return cli::WrongOption("input ", name, " ", type, " has no feed; expected --feed ", name,
                              "=", kSources);
    }
    used.insert(source->first);
    if (!IsFile(source->second.text)) {
      HT_ASSIGN_OR_RETURN(const Generator generator, ParseGenerator(source->second.text));
      auto made = Generate(generator, type);
      if (!made.ok()) return Annotate(made.status(), Concat("--feed ", name, ": "));
      tensors.push_back(*std::move(made));
      continue;
    }
    const Tensor& value = source->second.value;
    if (value.dtype() != type.dtype || value.shape() != type.shape) {
      return cli::WrongOption("--feed ", name, ": ", source->second.text, " is ",
                              value.TypeString(), "; expected ", type);
    }
    tensors.push_back(value);
  }
  for (const auto& [input, source] : sources_) {
    if (!used.contains(input)) {
      return cli::WrongOption("--feed ", input, ": the graph has no such input; ",
                              inputs.empty() ? "it has none" : "expected " + inputs);
    }
  }
  return tensors;
}

}  // namespace halftone::tools
