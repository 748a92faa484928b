#include "halftone/passes/pass_manager.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "halftone/core/check.h"
#include "halftone/graph/ir/text.h"
#include "halftone/graph/ir/verify.h"
#include "halftone/passes/progress.h"

namespace halftone::passes {
namespace {

// Every text of a graph begins so.
constexpr std::string_view kDumpStart = "graph @";

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

void PassManager::Add(std::unique_ptr<Pass> pass) {
  std::string name = pass->name();
  groups_.push_back({.name = std::move(name), .passes = {std::move(pass)}});
}

void PassManager::AddOwn(std::shared_ptr<Pass> pass) {
  std::string name = pass->name();
  groups_.push_back({.name = std::move(name), .passes = {std::move(pass)}, .is_own = true});
}

void PassManager::AddGroup(std::string name, std::vector<std::unique_ptr<Pass>> passes,
                           int max_rounds) {
  HT_CHECK(max_rounds > 0, "a group needs at least one round");
  Group group{.name = std::move(name), .max_rounds = max_rounds, .to_fixed_point = true};
  for (std::unique_ptr<Pass>& pass : passes) group.passes.push_back(std::move(pass));
  groups_.push_back(std::move(group));
}

bool IsDumpName(const std::string& file_name) {
  const size_t digits = std::min(file_name.find_first_not_of("0123456789"), file_name.size());
  // As "%02d_" writes numbers.
  const bool number = digits == 2 || (digits > 2 && file_name[0] != '0');
  return number && file_name.size() > digits + 5 && file_name[digits] == '_' &&
         file_name.ends_with(".txt");
}

absl::Status PassManager::Run(ir::Graph& graph, PassContext& context) {
  HT_CHECK(context.target != nullptr, "passes need a target");
  runs_.clear();
  dumps_ = 0;
  HT_RETURN_IF_ERROR(ParseFilter());
  HT_ASSIGN_OR_RETURN(const size_t groups, CountGroupsToRun());
  if (options_.verify) {
    HT_RETURN_IF_ERROR(Annotate(ir::Verify(graph), "graph before the first pass: "));
  }
  HT_RETURN_IF_ERROR(RemoveOldDumps());
  HT_RETURN_IF_ERROR(Dump(graph, "input"));
  for (size_t i = 0; i < groups; ++i) HT_RETURN_IF_ERROR(RunGroup(groups_[i], graph, context));
  return absl::OkStatus();
}

absl::Status PassManager::RunGroup(const Group& group, ir::Graph& graph, PassContext& context) {
  for (int round = 0; round < group.max_rounds; ++round) {
    bool changed = false;
    for (const auto& pass : group.passes) {
      if (!Selected(pass->name())) continue;
      const absl::StatusOr<bool> result =
          RunPass(*pass, round, options_.check_changed || group.is_own, graph, context);
      if (!result.ok()) {
        return Annotate(result.status(), std::string("pass ") + pass->name() + ": ");
      }
      changed |= *result;
    }
    if (!changed || !group.to_fixed_point) return absl::OkStatus();
  }
  return Internal("group ", group.name, " still changes the graph after ", group.max_rounds,
                  " rounds");
}

absl::StatusOr<bool> PassManager::RunPass(Pass& pass, int round, bool check_changed,
                                          ir::Graph& graph, PassContext& context) {
  const uint64_t hash_before = check_changed ? graph.Hash() : 0;
  context.stats.clear();
  if (context.progress != nullptr) {
    context.progress->Begin(std::string("pass ") + pass.name(), graph.nodes().size());
  }
  const auto start = std::chrono::steady_clock::now();
  HT_ASSIGN_OR_RETURN(const bool changed, pass.Run(graph, context));
  if (changed) HT_RETURN_IF_ERROR(graph.Sort());
  runs_.push_back({pass.name(), round, changed, SecondsSince(start), context.stats});
  if (changed && options_.verify) HT_RETURN_IF_ERROR(ir::Verify(graph));
  if (check_changed && changed != (graph.Hash() != hash_before)) {
    return Internal(changed ? "answered that it changed the graph, but did not"
                            : "answered that it left the graph alone, but changed it");
  }
  if (changed) HT_RETURN_IF_ERROR(Dump(graph, pass.name()));
  return changed;
}

absl::Status PassManager::ParseFilter() {
  filter_names_.clear();
  filter_excludes_ = !options_.filter.empty() && options_.filter.front() == '-';
  std::istringstream parts(options_.filter);
  for (std::string part; std::getline(parts, part, ',');) {
    const bool excludes = !part.empty() && part.front() == '-';
    if (excludes != filter_excludes_) {
      return InvalidArgument("pass filter \"", options_.filter,
                             "\" mixes names to run with names to leave out");
    }
    if (excludes) part.erase(0, 1);
    const bool known = std::any_of(groups_.begin(), groups_.end(),
                                   [&](const Group& group) { return group.Has(part); });
    if (!known) return InvalidArgument("pass filter: no pass is named \"", part, "\"");
    filter_names_.push_back(part);
  }
  return absl::OkStatus();
}

bool PassManager::Group::Has(const std::string& pass) const {
  return std::any_of(passes.begin(), passes.end(),
                     [&](const auto& own) { return pass == own->name(); });
}

absl::StatusOr<size_t> PassManager::CountGroupsToRun() const {
  if (options_.stop_after.empty()) return groups_.size();
  for (size_t count = groups_.size(); count > 0; --count) {
    if (groups_[count - 1].Has(options_.stop_after)) return count;
  }
  return InvalidArgument("stop after: no pass is named \"", options_.stop_after, "\"");
}

bool PassManager::Selected(const std::string& pass) const {
  if (filter_names_.empty()) return true;
  const bool named =
      std::find(filter_names_.begin(), filter_names_.end(), pass) != filter_names_.end();
  return named != filter_excludes_;
}

// What an earlier run left in the folder would be taken for this one's. A file of the user's that
// has such a name but no graph stays.
absl::Status PassManager::RemoveOldDumps() const {
  if (options_.dump_dir.empty()) return absl::OkStatus();
  namespace fs = std::filesystem;
  std::vector<fs::path> old;
  std::error_code error;
  for (fs::directory_iterator it(options_.dump_dir, error), end; !error && it != end;
       it.increment(error)) {
    if (!IsDumpName(it->path().filename().string())) continue;
    std::string start(kDumpStart.size(), '\0');
    std::ifstream(it->path()).read(start.data(), static_cast<std::streamsize>(start.size()));
    if (start == kDumpStart) old.push_back(it->path());
  }
  for (const fs::path& path : old) {
    if (!fs::remove(path, error)) {
      return absl::UnavailableError(Concat("cannot remove ", path.string(), " of an earlier run"));
    }
  }
  return absl::OkStatus();
}

absl::Status PassManager::Dump(const ir::Graph& graph, const std::string& what) {
  if (options_.dump_dir.empty()) return absl::OkStatus();
  const std::filesystem::path dir(options_.dump_dir);
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  char number[16];
  std::snprintf(number, sizeof(number), "%02d_", dumps_++);
  const std::filesystem::path path = dir / (number + what + ".txt");
  ir::TextOptions text = ir::TextOptions::Lossless();
  text.constant_files = true;
  HT_RETURN_IF_ERROR(ir::WriteConstantFiles(graph, options_.dump_dir));
  std::ofstream file(path);
  file << ir::Print(graph, text);
  if (!options_.dump_remark.empty()) file << "// " << options_.dump_remark << '\n';
  file.flush();
  if (!file) return absl::UnavailableError(Concat("cannot write ", path.string()));
  return absl::OkStatus();
}

std::string PassManager::Summary() const {
  struct Row {
    int runs = 0;
    int changed = 0;
    double seconds = 0;
    std::map<std::string, int64_t> stats;
  };
  std::vector<std::string> order;
  std::map<std::string, Row> rows;
  for (const PassRun& run : runs_) {
    Row& row = rows[run.pass];
    if (row.runs++ == 0) order.push_back(run.pass);
    row.changed += run.changed ? 1 : 0;
    row.seconds += run.seconds;
    for (const auto& [name, count] : run.stats) row.stats[name] += count;
  }
  std::string table = "pass                              runs  changed       ms  statistics\n";
  for (const std::string& pass : order) {
    const Row& row = rows[pass];
    char line[128];
    std::snprintf(line, sizeof(line), "%-32s %5d %8d %8.2f ", pass.c_str(), row.runs, row.changed,
                  row.seconds * 1e3);
    table += line;
    for (const auto& [name, count] : row.stats) {
      if (count != 0) table += Concat(" ", name, "=", count);
    }
    table += "\n";
  }
  return table;
}

}  // namespace halftone::passes
