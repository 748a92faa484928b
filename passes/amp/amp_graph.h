// AmpGraph: a graph as the precision passes see it. Only the edges along which the choice between
// f32 and 16 bit travels are in it, and casts that insert-amp-casts made are looked through, so the
// view of a graph is the same before and after the pass.
//
// A port is *main* if it is a float and the op's trait does not keep it f32. All main ports of a
// node share one dtype; that is what painting decides.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "halftone/graph/ir/graph.h"
#include "halftone/passes/amp/policy_match.h"

namespace halftone::passes {

// Provenance of the casts that the precision passes own.
inline constexpr char kAmpPass[] = "insert-amp-casts";

enum class AmpRole : uint8_t {
  kPaintable,  // f32 in, floats out: may turn 16-bit. Also a node of 16-bit values that the user
               // denies: it is raised to f32
  kObserver,  // f32 in, no float out (argmax, comparisons): follows its inputs, never causes a cast
  kSource,    // f32 out only (inputs, variables, constants, embeddings; a cast of a variable that
              // is kept in 16 bits): stays f32, readers cast
  kOpaque  // f64, integers, values the user made 16-bit, user casts, roots and markers: left alone
};

struct AmpVertex {
  ir::Node* node = nullptr;
  AmpRole role = AmpRole::kOpaque;
  amp::ClassChoice choice;
  std::optional<DType> raised_from = {};  // see ir::AmpDecision
  // Per input port: the vertex whose main output feeds a main port of this paintable node or
  // observer; kNotMain, or kFixedF32 for a value that is f32 whatever is decided.
  std::vector<int> producers;
  std::vector<int> users;  // vertices that read a main output on a main port; sorted, distinct
  bool has_f32_user =
      false;  // a main output is read where f32 was meant: graph outputs, opaque nodes, kept ports
};

class AmpGraph {
 public:
  static constexpr int kNotMain = -1;
  static constexpr int kFixedF32 = -2;

  // `classes` as given by amp::ClassifyNodes; may be empty where classes do not matter.
  AmpGraph(ir::Graph& graph, const std::map<int64_t, amp::ClassChoice>& classes);

  const std::vector<AmpVertex>& vertices() const { return vertices_; }
  const AmpVertex& operator[](int v) const { return vertices_[v]; }
  int size() const { return static_cast<int>(vertices_.size()); }
  const std::string& name(int v) const { return vertices_[v].node->name(); }
  // The vertex of a node; casts of the precision passes have none (-1).
  int IndexOf(const ir::Node& node) const;
  // Vertices of main inputs, without kNotMain; kFixedF32 may occur.
  std::vector<int> MainProducers(int v) const;
  // Vertex indices in the order of node names: what depends on it does not depend on node order.
  const std::vector<int>& by_name() const { return by_name_; }

 private:
  // Sets raised_from too.
  static AmpRole RoleOf(AmpVertex& vertex);
  void ConnectInput(int v, int port);

  std::vector<AmpVertex> vertices_;
  std::vector<int> by_name_;
  std::map<int64_t, int> index_;
};

bool IsConstant(const ir::Node& node);
// Also what reads a variable that is kept in 16 bits: its cast to f32.
bool IsVariable(const ir::Node& node);
// Whether insert-amp-casts made it.
bool IsAmpCast(const ir::Node& node);
// gradient(y, x...) -> dx...: the one marker with values on the differentiated path as operands.
bool IsGradientMarker(const ir::Node& node);

// `value` without casts of the precision passes between.
ir::Value LookThroughAmpCasts(ir::Value value);
// Whether the pass turned this value 16-bit (not: the user made it so).
bool IsLoweredValue(ir::Value value);
// The 16-bit dtype that the user gave a value which a raised node now gives in f32; else nothing.
std::optional<DType> RaisedFrom(ir::Value value);
// Whether the node was decided to compute in f32 what the user made 16-bit.
bool IsRaised(const ir::Node& node);
// The dtype that the value would have without mixed precision.
DType LogicalDType(ir::Value value);

bool IsMainInput(const ir::Node& node, int port);
bool IsMainOutput(const ir::Node& node, int port);
// Main ports that the op wants in one dtype (see AmpTrait::same_dtype_inputs); fewer than two means
// no constraint.
std::vector<int> SameDTypePorts(const ir::Node& node);

}  // namespace halftone::passes
