#include "artel/ps/placement.h"

#include <gtest/gtest.h>

#include "artel/base/error.h"

namespace artel::ps {
namespace {

using Held = std::vector<std::vector<Holding>>;

TEST(Placement, ANewRunSpreadsRangesAndCopies) {
  const auto single = place_ranges(3, Held(3), 1);
  for (int range = 0; range < 3; ++range)
    EXPECT_EQ(single[range], (Placement{.primary = range})) << range;
  std::vector<int> answering(3);
  for (const Placement& place : place_ranges(3, Held(3), 2)) {
    ++answering[place.primary];
    EXPECT_GE(place.backup, 0);
    EXPECT_NE(place.backup, place.primary);
    EXPECT_EQ(place.source, -1);
  }
  EXPECT_EQ(answering, std::vector<int>(3, 1));
}

TEST(Placement, OneServerHasAllAndNoCopy) {
  const Held held = {{{0, 7, true, 3}, {1, 5, true, 3}}};
  for (const Placement& place : place_ranges(2, held, 2))
    EXPECT_EQ(place, (Placement{.primary = 0, .backup = -1, .source = 0, .latest = 3}));
}

TEST(Placement, ANewServerGetsItsShare) {
  const Held held = {{{0, 7, true, 3}, {1, 5, true, 3}}, {}};
  const auto places = place_ranges(2, held, 2);
  EXPECT_EQ(places[0], (Placement{0, 1, 0, {1}, 3}));
  EXPECT_EQ(places[1], (Placement{1, 0, 0, {1}, 3}));
}

TEST(Placement, GoesOnFromWhoeverHasSeenMost) {
  // The copy of range 0 lacks a change, and that of range 1 has them all.
  const Held held = {{{0, 8, true, 4}, {1, 5, true, 4}}, {{0, 7, true, 3}, {1, 5, true, 4}}};
  const auto places = place_ranges(2, held, 2);
  EXPECT_EQ(places[0], (Placement{0, 1, 0, {1}, 4}));
  EXPECT_EQ(places[1], (Placement{1, 0, 0, {}, 4}));
}

TEST(Placement, WhatIsLostIsSaid) {
  EXPECT_THROW(place_ranges(2, {{{0, 7, true, 3}}}, 2), Error);
  EXPECT_THROW(place_ranges(2, {}, 1), Error);
  // Before the first contribution nothing is lost: all is set up anew.
  EXPECT_EQ(place_ranges(2, {{{0, 7, false, 0}}}, 1)[1].source, -1);
}

TEST(Placement, TravelsAsText) {
  const std::vector<Holding> held = {{0, 7, true, 3}, {2, 1, false, 0}};
  EXPECT_EQ(holdings_from_text(to_text(held)), held);
  const std::vector<Placement> places = {{0, 1, 0, {1}, 4}, {1, -1, -1, {}, 0}};
  EXPECT_EQ(placements_from_text(to_text(places)), places);
  EXPECT_THROW(holdings_from_text("[[1]]"), Error);
  EXPECT_THROW(placements_from_text("{"), Error);
}

}  // namespace
}  // namespace artel::ps
