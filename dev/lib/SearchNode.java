import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.List;
import java.util.Map;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.core.config.Configurator;
import org.opensearch.analysis.common.CommonAnalysisPlugin;
import org.opensearch.common.settings.Settings;
import org.opensearch.index.reindex.ReindexPlugin;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.painless.PainlessPlugin;
import org.opensearch.transport.Netty4Plugin;

/** One real search node for tests. Arguments: HOME, then node settings as KEY=VALUE. */
public final class SearchNode extends Node {
    private SearchNode(Settings settings, Path home) {
        super(InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), home.resolve("config"), () -> "test-node"),
            List.of(Netty4Plugin.class, CommonAnalysisPlugin.class, PainlessPlugin.class, ReindexPlugin.class), false);
    }

    public static void main(String[] args) throws Exception {
        Configurator.setRootLevel(Level.WARN);
        Path home = Paths.get(args[0]).toAbsolutePath();
        Files.createDirectories(home.resolve("config"));
        Settings.Builder settings = Settings.builder()
            .put("path.home", home.toString()).put("cluster.name", "test").put("node.name", "test-node")
            .put("discovery.type", "single-node").put("network.host", "127.0.0.1")
            .put("http.type", "netty4").put("transport.type", "netty4")
            .put("cluster.routing.allocation.disk.threshold_enabled", "false");
        for (int i = 1; i < args.length; i++) {
            String[] kv = args[i].split("=", 2);
            settings.put(kv[0], kv[1]);
        }
        SearchNode node = new SearchNode(settings.build(), home);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                node.close();
            } catch (Exception e) {
                e.printStackTrace();
            }
        }));
        node.start();
        Thread.currentThread().join();
    }
}
