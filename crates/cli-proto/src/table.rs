//! Column output as `vcl.list` and `backend.list` lay it out.
//!
//! Each column is as wide as its widest cell, the last one is not padded. Between columns are one to three blanks, as
//! many as fit a line of 80. A row that begins with a blank is not a row of the table and passes unchanged.

const WIDTH: usize = 80;

/// Lays out rows; `None` cells don't exist. Every row ends in a newline.
#[must_use]
pub fn layout(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut widths = vec![0; columns];
    for row in rows.iter().filter(|row| !is_verbatim(row)) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let longest: usize = widths.iter().sum();
    let gap = (WIDTH.saturating_sub(longest) / columns.max(1)).clamp(1, 3);
    let mut out = String::new();
    for row in rows {
        if is_verbatim(row) {
            out.push_str(&row[0]);
            out.push('\n');
            continue;
        }
        for (index, cell) in row.iter().enumerate() {
            out.push_str(cell);
            if index + 1 < row.len() {
                let pad = widths[index].saturating_sub(cell.chars().count()) + gap;
                out.extend(std::iter::repeat_n(' ', pad));
            }
        }
        out.push('\n');
    }
    out
}

fn is_verbatim(row: &[String]) -> bool {
    row.len() == 1 && row[0].starts_with(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn columns_line_up_and_lines_fit() {
        let rows = [row(&["active", "auto", "x"]), row(&["available", "cold", "longer"]), row(&["  note here"])];
        assert_eq!(layout(&rows), "active      auto   x\navailable   cold   longer\n  note here\n");
        let wide = "w".repeat(70);
        assert_eq!(layout(&[row(&["a", &wide, "b"])]), format!("a  {wide}  b\n"));
        assert_eq!(layout(&[]), "");
    }
}
