#include "artel/data/tables/dates.h"

#include <gtest/gtest.h>

namespace artel::data {
namespace {

using Order = DateFormat::Order;

TEST(Dates, TheFormatFollowsFromAllValues) {
  EXPECT_EQ(date_format_of({"2024-05-31", "1999-12-01"}),
            (DateFormat{Order::year_month_day, false}));
  EXPECT_EQ(date_format_of({"31.5.2024", "1.12.99"}), (DateFormat{Order::day_month_year, false}));
  EXPECT_EQ(date_format_of({"5/6/24", "5/31/24"}), (DateFormat{Order::month_day_year, false}));
  EXPECT_EQ(date_format_of({"5/6/24", "31/5/24"}), (DateFormat{Order::day_month_year, false}));
  EXPECT_EQ(date_format_of({"2024-05-31 00:00", "2024-06-01 18:30"}),
            (DateFormat{Order::year_month_day, true}));
}

TEST(Dates, OtherTextsAreNoDates) {
  for (const char* text : {"", "1.2.3", "2024-13-01", "2024-02-30", "2024-01", "2024-01-02x",
                           "a-b-c", "2024-01/02", "2024-01-02 25:00", "12024-01-02", "5551234"})
    EXPECT_FALSE(date_format_of({text})) << text;
  EXPECT_FALSE(date_format_of({"2024-05-31", "unknown"}));
  EXPECT_FALSE(date_format_of({}));
}

TEST(Dates, SecondsAndCalendarAgree) {
  const DateFormat format = {Order::year_month_day, true};
  EXPECT_EQ(parse_date("1970-01-02 00:00:01.5", format), 86401.5);
  EXPECT_EQ(parse_date("1969-12-31T23:59:00Z", format), -60);
  const CalendarTime leap = calendar_time(*parse_date("2024-02-29 13:30", format));
  EXPECT_EQ(leap.year, 2024);
  EXPECT_EQ(leap.month, 2);
  EXPECT_EQ(leap.weekday, 3);  // a Thursday
  EXPECT_EQ(leap.hours, 13.5);
}

}  // namespace
}  // namespace artel::data
