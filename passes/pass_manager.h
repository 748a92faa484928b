// PassManager: runs passes in order and holds each to its contract.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "halftone/passes/pass.h"

namespace halftone::passes {

// Whether a file in PassManagerOptions::dump_dir has the name of a dump: "07_simplify.txt".
bool IsDumpName(const std::string& file_name);

struct PassManagerOptions {
  // Where to write the graph before the first pass and after each that changed it: 00_input.txt,
  // 01_insert-amp-casts.txt, ... The folder is made; such files of an earlier run are removed.
  // Empty: nowhere.
  std::string dump_dir;
  // A line to end each of them with, as a comment; empty: none.
  std::string dump_remark;
  // Verify the graph before the first pass and after each that changed it.
  bool verify = true;
  // Compare what a pass answered with whether the graph's hash changed. Costs a hash per pass.
#ifdef NDEBUG
  bool check_changed = false;
#else
  bool check_changed = true;
#endif
  // "" runs every pass; "a,b" only these; "-a,-b" all but these. A name that no pass has is an
  // error.
  std::string filter;
  // Run nothing after the last pass, or group of passes, with this name in it. A name that no pass
  // has is an error. Empty: run all.
  std::string stop_after;
};

// One run of one pass.
struct PassRun {
  std::string pass;
  int round = 0;  // within a fixed-point group; else 0
  bool changed = false;
  double seconds = 0;
  std::map<std::string, int64_t> stats;
};

// Not thread-safe. Reusable: each Run starts the log anew.
class PassManager {
 public:
  explicit PassManager(PassManagerOptions options = {}) : options_(std::move(options)) {}

  void Add(std::unique_ptr<Pass> pass);
  // A pass from outside the library. What it answers is always compared with the graph: nothing
  // else has tested it.
  void AddOwn(std::shared_ptr<Pass> pass);
  // Runs `passes` in order, again and again until a round changes nothing.
  // Requires: max_rounds > 0.
  void AddGroup(std::string name, std::vector<std::unique_ptr<Pass>> passes, int max_rounds = 16);

  // Sorts and verifies after each pass that changed the graph. `context.target` must not be null.
  // Errors are prefixed with the pass: "pass clean-up-casts: ...". Internal: a pass broke the
  // graph, answered "changed" wrongly, or a group went on changing after max_rounds.
  // InvalidArgument: the filter or stop_after names an unknown pass. Unavailable: the dump cannot
  // be written.
  absl::Status Run(ir::Graph& graph, PassContext& context);

  // What the last Run did, in order; filtered passes are absent.
  const std::vector<PassRun>& runs() const { return runs_; }
  // The log as a table: pass, rounds, changed, milliseconds, statistics.
  std::string Summary() const;

 private:
  struct Group {
    bool Has(const std::string& pass) const;
    std::string name;
    std::vector<std::shared_ptr<Pass>> passes = {};
    int max_rounds = 1;  // 1: a single pass, not a group
    bool to_fixed_point = false;
    bool is_own = false;
  };
  absl::Status ParseFilter();
  // How many groups run. Error: InvalidArgument.
  absl::StatusOr<size_t> CountGroupsToRun() const;
  bool Selected(const std::string& pass) const;
  absl::Status RunGroup(const Group& group, ir::Graph& graph, PassContext& context);
  absl::StatusOr<bool> RunPass(Pass& pass, int round, bool check_changed, ir::Graph& graph,
                               PassContext& context);
  absl::Status RemoveOldDumps() const;
  absl::Status Dump(const ir::Graph& graph, const std::string& what);

  const PassManagerOptions options_;
  std::vector<Group> groups_;
  std::vector<PassRun> runs_;
  std::vector<std::string> filter_names_;
  bool filter_excludes_ = false;
  int dumps_ = 0;
};

}  // namespace halftone::passes
