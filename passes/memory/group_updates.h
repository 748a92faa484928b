// group-updates: updates that one launch can do get one number.
//
// Before:      %v = sgd_update(%w, %dw, %lr, %inv_scale, %clip, %apply, %step)
//              commit "w" = %v
//              %c = sgd_update(%b, %db, %lr, %inv_scale, %clip, %apply, %step)
//              commit "b" = %c
// After:       %v = sgd_update(%w, %dw, %lr, %inv_scale, %clip, %apply, %step) {group=1}
//              commit "w" = %v
//              %c = sgd_update(%b, %db, %lr, %inv_scale, %clip, %apply, %step) {group=1}
//              commit "b" = %c
// Requires:    PassContext::target.
// Guarantees:  updates of one number above 0 are neighbours among the nodes that run, of one op,
//              with equal hyper-parameters and dtypes and the same scalar operands; none reads what
//              another one writes. Numbers count from 1, in order; an update alone has 0. No value
//              changes.
// Never:       touches the graph for a target that does not join updates; moves a node.
// Order:       after everything that adds, removes or moves nodes; before keep-low-weights, since
//              a launch decides what is written in place.
// Stats:       "groups", "grouped_updates".
#pragma once

#include <memory>
#include <vector>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeGroupUpdates();

// Whether `node` is an optimizer's update of a parameter or an average.
bool IsUpdate(const ir::Node& node);

// By position in the graph, the first node of the launch that the node runs in: itself, but for
// updates of one number, which run at the place of their first. A number that does not keep to the
// guarantees above (in a file) makes several launches. Requires: a sorted graph.
std::vector<int> LaunchesOf(const ir::Graph& graph);

}  // namespace halftone::passes
