#include "halftone/core/shape.h"

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

namespace halftone {
namespace {

std::string MakeError(const std::vector<int64_t>& dims) {
  const absl::StatusOr<Shape> shape = Shape::Make(dims);
  EXPECT_EQ(shape.status().code(), absl::StatusCode::kInvalidArgument);
  return Message(shape.status());
}

TEST(ShapeTest, ScalarAndVectors) {
  const Shape scalar;
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.num_elements(), 1);
  EXPECT_EQ(scalar.ToString(), "[]");
  EXPECT_TRUE(scalar.strides().empty());
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.num_elements(), 24);
  EXPECT_EQ(shape[1], 3);
  EXPECT_EQ(shape.dim(2), 4);
  EXPECT_EQ(shape.strides(), (absl::InlinedVector<int64_t, 4>{12, 4, 1}));
  std::ostringstream out;
  out << shape;
  EXPECT_EQ(out.str(), "[2,3,4]");
}

TEST(ShapeTest, EmptyExtents) {
  const Shape shape{3, 0, 2};
  EXPECT_EQ(shape.num_elements(), 0);
  EXPECT_EQ(shape.strides(), (absl::InlinedVector<int64_t, 4>{0, 2, 1}));
}

TEST(ShapeTest, Equality) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2}), (Shape{2, 1}));
}

TEST(ShapeTest, MakeAcceptsTheBounds) {
  EXPECT_TRUE(Shape::Make({kMaxElements}).ok());
  EXPECT_TRUE(Shape::Make({1, 1, 1, 1, 1, 1, 1, 1}).ok());
  EXPECT_TRUE(Shape::Make({}).ok());
  EXPECT_EQ(Shape::Make({kMaxElements / 2, 2, 1})->num_elements(), kMaxElements);
}

TEST(ShapeTest, MakeRefusesWithTheReason) {
  EXPECT_EQ(MakeError({2, -1}), "shape [2,-1] has extent -1; expected 0 or more");
  EXPECT_EQ(MakeError({1, 1, 1, 1, 1, 1, 1, 1, 1}),
            "shape [1,1,1,1,1,1,1,1,1] has rank 9; expected at most 8");
  EXPECT_EQ(MakeError({kMaxElements + 1}),
            "shape [1099511627777] has more than 1099511627776 elements");
  EXPECT_EQ(MakeError(std::vector<int64_t>(1000, 7)),
            "shape [7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,...] has rank 1000; expected at most 8");
}

TEST(ShapeTest, MakeRefusesProductsThatOverflow) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{
           {kHuge, 4}, {kHuge, kHuge}, {1 << 30, 1 << 30, 1 << 30}, {kMaxElements, 2}}) {
    EXPECT_NE(MakeError(dims).find("has more than 1099511627776 elements"), std::string::npos);
  }
  // Even where an extent of 0 makes the product 0, a stride would overflow.
  EXPECT_NE(MakeError({0, kHuge, kHuge}).find("has more than"), std::string::npos);
  EXPECT_NE(MakeError({kHuge, kHuge, 0}).find("has more than"), std::string::npos);
}

TEST(ShapeDeathTest, ConstructorChecks) {
  EXPECT_DEATH(Shape({2, -1}), "extent -1");
  const std::vector<int64_t> dims(9, 1);
  EXPECT_DEATH(Shape{absl::Span<const int64_t>(dims)}, "rank 9");
}

TEST(BroadcastTest, FollowsNumPy) {
  struct Case {
    Shape a, b, expected;
  };
  for (const Case& c :
       {Case{{2, 3}, {2, 3}, {2, 3}}, Case{{2, 3}, {3}, {2, 3}}, Case{{2, 1}, {1, 3}, {2, 3}},
        Case{{}, {4}, {4}}, Case{{}, {}, {}}, Case{{8, 1, 6, 1}, {7, 1, 5}, {8, 7, 6, 5}},
        Case{{1}, {0}, {0}}, Case{{2, 0}, {1}, {2, 0}}}) {
    EXPECT_EQ(*BroadcastShapes(c.a, c.b), c.expected) << c.a << c.b;
    EXPECT_EQ(*BroadcastShapes(c.b, c.a), c.expected) << c.a << c.b;
    EXPECT_TRUE(BroadcastsTo(c.a, c.expected)) << c.a;
    EXPECT_TRUE(BroadcastsTo(c.b, c.expected)) << c.b;
  }
}

TEST(BroadcastTest, RefusesWithBothShapes) {
  const auto error = BroadcastShapes(Shape{2, 3}, Shape{4, 3}).status();
  EXPECT_EQ(error.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(error),
            "shapes [2,3] and [4,3] do not broadcast: 2 against 4 at axis -2; "
            "expected equal extents or 1");
  EXPECT_FALSE(BroadcastShapes(Shape{2}, Shape{0}).ok());
  // Each fits, the result does not.
  EXPECT_FALSE(BroadcastShapes(Shape{kMaxElements, 1}, Shape{1, 2}).ok());
}

TEST(BroadcastTest, ToIsExact) {
  EXPECT_FALSE(BroadcastsTo(Shape{2, 3}, Shape{3}));
  EXPECT_FALSE(BroadcastsTo(Shape{2}, Shape{1}));
  EXPECT_FALSE(BroadcastsTo(Shape{3}, Shape{3, 2}));
  EXPECT_TRUE(BroadcastsTo(Shape{}, Shape{3, 2}));
  EXPECT_TRUE(BroadcastsTo(Shape{1}, Shape{0}));
}

TEST(NormalizeAxisTest, RangeAndErrors) {
  EXPECT_EQ(*NormalizeAxis(0, 2), 0);
  EXPECT_EQ(*NormalizeAxis(-1, 2), 1);
  EXPECT_EQ(*NormalizeAxis(-2, 2), 0);
  const auto message = [](int64_t axis, int rank) {
    const absl::Status status = NormalizeAxis(axis, rank).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return Message(status);
  };
  EXPECT_EQ(message(5, 2), "axis 5 out of range for rank 2; expected -2..1");
  EXPECT_EQ(message(-3, 2), "axis -3 out of range for rank 2; expected -2..1");
  EXPECT_EQ(message(int64_t{1} << 32, 2),
            "axis 4294967296 out of range for rank 2; expected -2..1");
  EXPECT_EQ(message(0, 0), "axis 0 out of range for rank 0; a scalar has no axes");
}

}  // namespace
}  // namespace halftone
