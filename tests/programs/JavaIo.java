import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;

/** Threads that write and read back files of their own. */
public class JavaIo {
	static String work(int number) throws Exception {
		Path path = Path.of("data", "java" + number);
		long written = 0, read = 0;
		try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw")) {
			for (int i = 0; i < 10; i++) {
				file.write(new byte[100 * number + i + 1]);
				written += 100 * number + i + 1;
			}
			file.seek(0);
			byte[] buffer = new byte[333];
			for (int n; (n = file.read(buffer)) > 0;)
				read += n;
		}
		Files.move(path, Path.of("data", "java" + number + ".done"));
		return "java" + number + "\t" + written + " " + read;
	}

	public static void main(String[] args) throws Exception {
		String[] lines = new String[4];
		Thread[] threads = new Thread[lines.length];
		for (int i = 0; i < lines.length; i++) {
			int number = i;
			threads[i] = new Thread(() -> {
				try {
					lines[number] = work(number);
				} catch (Exception error) {
					lines[number] = error.toString();
				}
			});
			threads[i].start();
		}
		for (Thread thread : threads)
			thread.join();
		for (String line : lines)
			System.out.println(line);
		System.exit(5);
	}
}
