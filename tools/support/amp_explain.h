// Why mixed precision decided as it did, and what it would decide under another policy. Nothing runs.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "halftone/graph/ir/target.h"
#include "halftone/passes/amp/policy.h"
#include "halftone/passes/amp/report.h"

namespace halftone::tools {

// The policy of the graph's `amp` marker. Errors: NotFound, the graph has none: it was not traced
// with mixed precision, or a pass has read it already.
absl::StatusOr<amp::Policy> PolicyOf(const ir::Graph& graph);

// A copy of `graph` as it would be traced with `policy`; without a dtype in it, that of the graph's own
// marker, or what the target prefers. Errors: FailedPrecondition where nothing says which dtype, or the
// graph has been through insert-amp-casts.
absl::StatusOr<std::unique_ptr<ir::Graph>> WithPolicy(const ir::Graph& graph, amp::Policy policy,
                                                      const ir::Target& target);

// That copy with the decisions for `target`. Errors: also those of insert-amp-casts.
absl::StatusOr<std::unique_ptr<ir::Graph>> DecideUnder(const ir::Graph& graph, amp::Policy policy,
                                                       const ir::Target& target);

// The chain of decisions that ends at `node` (a path, or a name), a line each, what it is due to
// below it, indented. Error: NotFound with near names.
absl::StatusOr<std::string> WhyDecided(const ir::Graph& decided, const std::string& node);

// `policy` with the changes of `--what-if`: "deny:softmax,allow:head/*,level:force,dtype:f16". An
// entry leaves the list where it was. Errors: InvalidArgument, what Policy::Parse says of an entry.
absl::StatusOr<amp::Policy> WithChanges(amp::Policy policy, const std::string& changes);

// What differs: a row per node whose dtype differs, with the reason now; then nodes, casts and bytes of
// both. Of equal decisions the last alone. `names`: of the two, in the header.
struct AmpNames {
  std::string before = "before", after = "after";
};
std::string DiffAmp(const passes::AmpReport& before, const passes::AmpReport& after,
                    const AmpNames& names = {});
// The nodes that DiffAmp shows.
int CountChanged(const passes::AmpReport& before, const passes::AmpReport& after);

// A policy file that says what `policy` is, and in comments what it does with this graph: every op type
// with its class, ready to be edited. Policy::Parse gives `policy` again.
std::string EffectivePolicy(const amp::Policy& policy, const passes::AmpReport& report);

}  // namespace halftone::tools
