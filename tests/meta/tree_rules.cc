#include "halftone/tests/meta/tree_rules.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace halftone::meta {
namespace {

namespace fs = std::filesystem;

// What each layer may include besides itself: other layers by name, "folder/" for a layer and all
// below it, or one header. The order is from low to high; what is not listed is forbidden. passes
// use optim (an optimizer rule builds nodes); kernels of the devices share code through kernels/
// and never include each other.
struct Layer {
  std::string_view folder;
  std::vector<std::string_view> may_include;
};

const std::vector<Layer>& Layers() {
  static const auto* const layers = new std::vector<Layer>{
      {"core", {}},
      {"proto", {}},
      {"distributed", {"core"}},
      {"distributed/mpi", {"distributed"}},
      {"graph/ir", {"core", "proto"}},
      {"graph/ops/support", {"core", "graph/ir"}},
      {"graph/ops", {"core", "graph/ir", "graph/ops/support"}},
      {"optim", {"core", "proto", "graph/ir", "graph/ops/support"}},
      // The rooms of passes/ know of what lies above them only what a pass is.
      {"passes/rewrite", {"core", "graph/ir", "graph/ops/support", "passes/pass.h"}},
      {"passes/layout",
       {"core", "graph/ir", "graph/ops/support", "passes/pass.h", "passes/rewrite"}},
      {"passes/memory",
       {"core", "graph/ir", "graph/ops/support", "passes/pass.h", "passes/layout",
        "passes/rewrite"}},
      {"passes/amp", {"core", "proto", "graph/ir", "optim", "passes/pass.h", "passes/rewrite"}},
      {"passes/autodiff",
       {"core", "graph/ir", "graph/ops/support", "optim", "passes/pass.h", "passes/amp",
        "passes/rewrite"}},
      {"passes", {"core", "graph/ir", "passes/"}},
      {"kernels", {"core", "distributed", "graph/ir", "graph/ops/support"}},
      {"kernels/reference/support", {"core", "graph/ir", "graph/ops/support", "kernels"}},
      {"kernels/reference/ops",
       {"core", "distributed", "graph/ir", "graph/ops/support", "kernels",
        "kernels/reference/support"}},
      {"kernels/cpu/simd", {"core", "graph/ir", "graph/ops/support", "kernels"}},
      {"kernels/cpu/onednn", {"core", "graph/ir", "kernels"}},
      {"kernels/cpu/support",
       {"core", "graph/ir", "graph/ops/support", "kernels", "kernels/cpu/simd"}},
      {"kernels/cpu/ops",
       {"core", "graph/ir", "graph/ops/support", "kernels", "kernels/cpu/simd",
        "kernels/cpu/onednn", "kernels/cpu/support"}},
      {"kernels/cuda/device", {"core", "graph/ir", "graph/ops/support", "kernels"}},
      {"kernels/cuda/runtime",
       {"core", "distributed", "graph/ir", "kernels", "kernels/cuda/device"}},
      {"kernels/cuda/cublaslt",
       {"core", "graph/ir", "kernels", "kernels/cuda/device", "kernels/cuda/runtime"}},
      {"kernels/cuda/cudnn",
       {"core", "graph/ir", "kernels", "kernels/cuda/device", "kernels/cuda/runtime"}},
      {"kernels/cuda/ops",
       {"core", "graph/ir", "graph/ops/support", "kernels", "kernels/cuda/device",
        "kernels/cuda/runtime", "kernels/cuda/cublaslt", "kernels/cuda/cudnn"}},
      {"graph/runtime",
       {"core", "distributed", "proto", "graph/ir", "graph/ops/support", "optim", "passes/",
        "kernels/"}},
      {"graph/onnx",
       {"core", "proto", "graph/ir", "graph/ops/support", "passes/rewrite", "kernels",
        "graph/onnx/rules"}},
      {"graph/onnx/rules", {"core", "graph/ir", "graph/ops/support", "graph/onnx"}},
      {"graph/nn",
       {"core", "distributed", "proto", "graph/ir", "graph/ops/support", "optim", "passes/",
        "kernels", "graph/runtime", "graph/onnx"}},
  };
  return *layers;
}

// The one header that the emulated device takes the place of, and what with.
constexpr std::string_view kDeviceHeader = "kernels/cuda/device/device.cuh";
constexpr std::string_view kEmulatedDevice = "tests/cuda_emulation/device.h";

// Library headers that cost every includer seconds, or tie it to a library, stay in sources.
constexpr std::array kSourceOnlyHeaders = {"dnnl",     "oneapi/dnnl",     "hwy/", "google/protobuf",
                                           "iostream", "halftone/proto/", "mpi.h"};

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

bool IsHeader(std::string_view path) { return EndsWith(path, ".h") || EndsWith(path, ".cuh"); }

bool IsCode(std::string_view path) {
  return IsHeader(path) || EndsWith(path, ".cc") || EndsWith(path, ".cu");
}

bool IsChecked(std::string_view path) {
  return IsCode(path) || EndsWith(path, ".proto") || EndsWith(path, ".py") ||
         EndsWith(path, ".pyi") || EndsWith(path, ".pyi.in") || EndsWith(path, ".def") ||
         EndsWith(path, ".md") || EndsWith(path, ".cmake") || EndsWith(path, "CMakeLists.txt");
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

// The name inside `#include "name"` or `#include <name>`, with its opening delimiter; "" otherwise.
std::string_view IncludedName(std::string_view line) {
  const auto skip_blanks = [&line] {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  };
  skip_blanks();
  if (!StartsWith(line, "#")) return {};
  line.remove_prefix(1);
  skip_blanks();
  if (!StartsWith(line, "include")) return {};
  line.remove_prefix(7);
  skip_blanks();
  if (line.empty() || (line[0] != '"' && line[0] != '<')) return {};
  const size_t end = line.find(line[0] == '"' ? '"' : '>', 1);
  return end == std::string_view::npos ? std::string_view() : line.substr(0, end);
}

// Whether an entry of may_include lets in the header `target` of the layer `to`.
bool Allows(std::string_view entry, std::string_view to, std::string_view target) {
  return EndsWith(entry, "/") ? StartsWith(std::string(to) + "/", entry)
                              : entry == to || entry == target;
}

std::string At(const SourceFile& file, size_t line, const std::string& what) {
  return file.path + ":" + std::to_string(line) + ": " + what;
}

std::string Folder(const std::string& path) {
  return fs::path(path).parent_path().generic_string();
}

}  // namespace

std::vector<SourceFile> ReadTree(const fs::path& root) {
  std::vector<SourceFile> files;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator();
       ++it) {
    const std::string name = it->path().filename().string();
    if (it->is_directory()) {
      const bool skip =
          name[0] == '.' || name == "build" || fs::exists(it->path() / "CMakeCache.txt");
      if (skip) it.disable_recursion_pending();
      continue;
    }
    const std::string path = it->path().lexically_relative(root).generic_string();
    if (!it->is_regular_file() || !IsChecked(path)) continue;
    std::ostringstream text;
    text << std::ifstream(it->path(), std::ios::binary).rdbuf();
    files.push_back({path, text.str()});
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

std::string_view LayerOf(std::string_view path) {
  std::string_view best;
  for (const Layer& layer : Layers()) {
    if (StartsWith(path, std::string(layer.folder) + "/") && layer.folder.size() > best.size()) {
      best = layer.folder;
    }
  }
  return best;
}

std::vector<std::string> CheckIncludes(const SourceFile& file) {
  std::vector<std::string> bad;
  if (!IsCode(file.path)) return bad;
  const std::string_view from = LayerOf(file.path);
  const bool is_test = StartsWith(file.path, "tests/");
  const bool light = IsHeader(file.path) && !is_test && !StartsWith(from, "kernels/cpu/") &&
                     !StartsWith(from, "kernels/cuda/");
  const std::vector<std::string_view> lines = Lines(file.text);
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view included = IncludedName(lines[i]);
    if (included.empty()) continue;
    const std::string name(included.substr(1));
    if (light) {
      for (const char* heavy : kSourceOnlyHeaders) {
        if (StartsWith(name, heavy)) bad.push_back(At(file, i + 1, name + " belongs in a source"));
      }
    }
    if (included[0] != '"') continue;
    const bool is_short = name.find('/') == std::string::npos;
    // examples/outside is a project of its own.
    if (is_short && !StartsWith(name, "dnnl") && !StartsWith(file.path, "examples/outside/")) {
      bad.push_back(At(file, i + 1, name + " needs its full name, \"halftone/<folder>/...\""));
    }
    if (name.find("..") != std::string::npos) {
      bad.push_back(At(file, i + 1, name + " leaves its folder by '..'"));
    }
    if (!StartsWith(name, "halftone/")) continue;
    const std::string target = name.substr(9);
    if (file.path == kDeviceHeader && target == kEmulatedDevice) continue;
    if (StartsWith(target, "tests/") && !is_test) {
      bad.push_back(At(file, i + 1, name + " is part of the tests"));
    }
    if (from.empty()) continue;
    const std::string_view to = LayerOf(target);
    const auto layer = std::find_if(Layers().begin(), Layers().end(),
                                    [from](const Layer& l) { return l.folder == from; });
    const auto& allowed = layer->may_include;
    if (to != from && std::none_of(allowed.begin(), allowed.end(), [&](std::string_view entry) {
          return Allows(entry, to, target);
        })) {
      bad.push_back(At(file, i + 1, std::string(from) + " must not include " + name));
    }
  }
  return bad;
}

std::vector<std::string> CheckRegistrations(const SourceFile& file) {
  std::vector<std::string> bad;
  if (!IsCode(file.path) || StartsWith(file.path, "tests/")) return bad;
  if (fs::path(file.path).parent_path().filename() == "ops") return bad;
  const std::vector<std::string_view> lines = Lines(file.text);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (StartsWith(lines[i], "void Register_")) {
      bad.push_back(At(file, i + 1, "registers, and nothing calls it: the folder is not `ops`"));
    }
  }
  return bad;
}

std::vector<std::string> CheckPragmaOnce(const SourceFile& file) {
  if (!IsHeader(file.path) || file.text.find("HWY_TARGET_TOGGLE") != std::string::npos) return {};
  const std::vector<std::string_view> lines = Lines(file.text);
  if (std::find(lines.begin(), lines.end(), "#pragma once") != lines.end()) return {};
  return {At(file, 1, "no #pragma once")};
}

std::vector<std::string> CheckLength(const SourceFile& file) {
  if (file.path == "docs/operators.md") return {};  // written by halftone_opt --operators
  const size_t lines = Lines(file.text).size();
  const size_t limit = EndsWith(file.path, "README.md") && file.path != "README.md"
                           ? size_t{kMaxReadmeLines}
                           : size_t{kMaxLines};
  if (lines <= limit) return {};
  return {At(file, lines, "over " + std::to_string(limit) + " lines")};
}

std::vector<std::string> CheckReadmes(const std::vector<SourceFile>& files) {
  std::map<std::string, std::string_view> readmes;  // folder -> text
  std::set<std::string> needed;
  for (const SourceFile& file : files) {
    const std::string folder = Folder(file.path);
    if (EndsWith(file.path, "README.md")) readmes[folder] = file.text;
    if (EndsWith(file.path, ".md")) continue;
    needed.insert(StartsWith(file.path, "tests/") ? "tests" : folder);
  }
  const auto named_above = [&readmes](const fs::path& folder) {
    const auto above = readmes.find(folder.parent_path().generic_string());
    const std::string name = "`" + folder.filename().string() + "/`";
    return above != readmes.end() && above->second.find(name) != std::string_view::npos;
  };
  std::vector<std::string> bad;
  for (const std::string& folder : needed) {
    if (readmes.count(folder) == 0 && (folder.empty() || !named_above(folder))) {
      bad.push_back(folder + ":1: no README.md, and none above names it");
    }
  }
  return bad;
}

std::vector<std::string> CheckLinks(const SourceFile& file,
                                    const std::function<bool(const std::string&)>& exists) {
  std::vector<std::string> bad;
  if (!EndsWith(file.path, ".md")) return bad;
  const std::vector<std::string_view> lines = Lines(file.text);
  bool fenced = false;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (StartsWith(lines[i], "```")) fenced = !fenced;
    if (fenced) continue;
    bool code = false;
    for (size_t at = 0; at < lines[i].size(); ++at) {
      if (lines[i][at] == '`') code = !code;
      if (code || !StartsWith(lines[i].substr(at), "](")) continue;
      const size_t end = lines[i].find(')', at);
      if (end == std::string_view::npos) break;
      const std::string_view link = lines[i].substr(at + 2, end - at - 2);
      const std::string target(link.substr(0, link.find('#')));
      if (target.empty() || target.find(':') != std::string::npos) continue;
      const fs::path path = (fs::path(file.path).parent_path() / target).lexically_normal();
      if (StartsWith(path.generic_string(), "..")) {
        bad.push_back(At(file, i + 1, target + " leaves the tree"));
      } else if (!exists(path.generic_string())) {
        bad.push_back(At(file, i + 1, "no file " + target));
      }
    }
  }
  return bad;
}

std::vector<std::string> CheckNames(const std::vector<SourceFile>& files, const NamesRule& rule) {
  std::vector<std::string> bad;
  std::set<std::string> still_named;
  for (const SourceFile& file : files) {
    if (!rule.applies(file.path)) continue;
    const std::vector<std::string> found = rule.named_in(file);
    if (rule.allowed.count(file.path) == 0) {
      bad.insert(bad.end(), found.begin(), found.end());
    } else if (!found.empty()) {
      still_named.insert(file.path);
    }
  }
  for (const auto& [path, why] : rule.allowed) {
    if (still_named.count(path) == 0) bad.push_back(path + ": is allowed names and has none");
  }
  return bad;
}

}  // namespace halftone::meta
