// Dates and times as tables write them: 2024-05-31, 31.5.2024, 5/31/24, each with or without a time
// of day.
//
//   const auto format = artel::data::date_format_of({"2024-05-31 07:30", "2024-06-01 18:00"});
//   const auto seconds = artel::data::parse_date("2024-06-02 00:00", *format);
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace artel::data {

struct DateFormat {
  enum class Order { year_month_day, day_month_year, month_day_year };
  Order order = Order::year_month_day;
  bool has_time = false;  // some values have a time of day other than midnight

  bool operator==(const DateFormat&) const = default;
};

// "year-month-day", "day-month-year", or "month-day-year".
std::string_view to_string(DateFormat::Order order);
// The order of that name, if there is one.
std::optional<DateFormat::Order> date_order(std::string_view name);

// The format in which every text is a valid date; empty without such a format or without texts.
// Slashes mean month first unless a day above 12 rules that out.
std::optional<DateFormat> date_format_of(const std::vector<std::string>& texts);

// Seconds since 1970-01-01 00:00 without regard to time zones; an offset such as Z or +02:00 is
// ignored. Empty if the text is not a date of this format.
std::optional<double> parse_date(std::string_view text, const DateFormat& format);

// The calendar fields of such seconds.
struct CalendarTime {
  int year = 1970;
  int month = 1;     // 1 to 12
  int weekday = 0;   // days since Monday
  double hours = 0;  // since midnight, with fractions
};
CalendarTime calendar_time(double seconds);

}  // namespace artel::data
